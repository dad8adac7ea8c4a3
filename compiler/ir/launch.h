#pragma once

#include <functional>
#include <span>
#include <vector>

#include "compiler/ir/kernel.h"

namespace kiln::ir {

/// The most threads a block may have, all axes together.
constexpr int64_t kThreadsOfBlock = 1024;
/// The most bytes that a thread may have of its own in memory (compute capability 3.0 and later).
constexpr int64_t kLocalBytesOfThread = 512 * 1024;
/// The most an axis may have, on every device with a CUDA driver of today.
int64_t launch_limit(ThreadAxis axis);

/// blockIdx.x, .y or .z.
bool is_block_axis(ThreadAxis axis);
/// threadIdx.x, .y or .z; not vthread.
bool is_thread_axis(ThreadAxis axis);

/// The loops of the host around a launch, outermost first.
using HostLoops = std::vector<const For*>;

/// The statements of a kernel that are launched one after the other: those of its body, looking
/// into the buffers that launches share and into loops of the host.
std::vector<Stmt> launched_statements(const Stmt& body);

/// The body with each launched statement replaced.
Stmt map_launches(const Stmt& body,
                  const std::function<Stmt(const Stmt&, const HostLoops& around)>& replace);

/// One launch, as split_host_device leaves it: loops over its axes, then what a thread does.
struct LaunchNest {
  std::vector<const For*> axes;  // at most one an axis
  Stmt body;
};
LaunchNest launch_nest(const Stmt& launched);

/// Whether an expression uses these variables alone and reads no memory, so that the host can
/// compute it.
bool is_known_to_host(const Expr& expr, std::span<const VarRef> known);

/// All ThreadIndex loops of the tree, outermost first.
std::vector<const For*> thread_loops(const Stmt& stmt);

}  // namespace kiln::ir
