#pragma once

#include <functional>
#include <vector>

#include "compiler/ir/kernel.h"

namespace kiln::passes {

constexpr int64_t kThreadsOfBlock = 1024;
/// The most an axis may have, on every device with a CUDA driver of today.
int64_t limit_of(ir::ThreadAxis axis);

bool is_block_axis(ir::ThreadAxis axis);
/// threadIdx.x, .y or .z; not vthread.
bool is_thread_axis(ir::ThreadAxis axis);

/// The statements of a kernel that are launched one after the other: those of its body, looking
/// into the buffers that launches share.
std::vector<ir::Stmt> launched_statements(const ir::Stmt& body);

/// The body with each launched statement replaced.
ir::Stmt map_launches(const ir::Stmt& body,
                      const std::function<ir::Stmt(const ir::Stmt&)>& replace);

/// One launch, as split_host_device leaves it: loops over its axes, then what a thread does.
struct LaunchNest {
  std::vector<const ir::For*> axes;  // at most one an axis
  ir::Stmt body;
};
LaunchNest launch_nest(const ir::Stmt& launched);

/// All ThreadIndex loops of the tree, outermost first.
std::vector<const ir::For*> thread_loops(const ir::Stmt& stmt);

}  // namespace kiln::passes
