// How many registers ptxas may give a thread: no more than a block has room for, of its own size,
// where that is known, or of any that the device allows. Else a launch may fail for want of them.
// How many blocks shall have room beside each other says the second number:
//
//   __launch_bounds__(512, 2)   sums down 4096 columns, 128 blocks on 132 multiprocessors
//
// Where it holds sums of matrices they are not for more blocks: spilled registers would cost more.
// Where two memories take turns they are for two blocks of 256 threads, which wait in turns.
//
// What a thread loads in a loop is under way as far as it has registers for it, and ptxas keeps to
// 32 so that 2048 threads have room: four loads of 128 bits. Where a launch has no more than 1024
// threads for each multiprocessor, they get what 1024 have room for, 64, or more where they have
// more of their own; ten loads are under way. By Little's law 4.1 TB/s of an H200 in 700 to 800 ns
// are 23 KB a multiprocessor: 512 threads with four loads each have 32 KB under way at best, and
// with ten 80.
#include "compiler/codegen/launch_bounds.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "compiler/codegen/cuda_launch.h"
#include "compiler/codegen/cuda_uses.h"
#include "compiler/ir/build.h"
#include "compiler/ir/gpu_arch.h"
#include "compiler/ir/mutator.h"
#include "compiler/ir/races.h"

namespace kiln::codegen {
namespace {

using namespace ir;

constexpr int64_t kThreadsOfHalf = 256;
constexpr int64_t kRegisters = 65536;  // of a multiprocessor, from sm_70 on
constexpr int64_t kMostBlocks = 16;    // that each architecture has at once
// Of a thread, beside what it has in buffers: addresses, counters and loads under way.
constexpr int64_t kOtherRegisters = 44;

/// Loops that load from memory; whether all of the launch wait for it alone, and not for other
/// threads or for functions, which may want any number of registers.
class FindsLoads : public Visitor {
 public:
  bool found = false;
  bool are_alone = true;
  int64_t words = 0;  // of a thread's own

 private:
  using Visitor::visit;
  void visit(const For& loop) override {
    are_alone = are_alone && !waits_in(loop.body).at_all();
    const bool around =
        std::exchange(is_in_loop_, is_in_loop_ || loop.loop_kind == LoopKind::Serial);
    Visitor::visit(loop);
    is_in_loop_ = around;
  }
  void visit(const Load& load) override {
    found = found || (is_in_loop_ && load.buffer->scope == Scope::Global);
    Visitor::visit(load);
  }
  void visit(const ir::Call& call) override {
    are_alone = are_alone && !language::is_function(call.op);
    Visitor::visit(call);
  }
  void visit(const Allocate& node) override {
    if (node.buffer->scope == Scope::Local)
      words += elements_of(*node.buffer) * ((size_of(node.buffer->type) + 3) / 4);
    Visitor::visit(node);
  }
  bool is_in_loop_ = false;
};

/// Of the busiest multiprocessor; nothing where the call says how many there are.
std::optional<int64_t> threads_of_multiprocessor(const LaunchNest& nest, int64_t multiprocessors) {
  if (multiprocessors == 0) return std::nullopt;
  int64_t blocks = 1;
  for (const For* axis : nest.axes) {
    const std::optional<int64_t> extent = as_const_int(axis->extent);
    if (!extent) return std::nullopt;
    if (is_block_axis(axis->thread)) blocks *= *extent;
  }
  return (blocks + multiprocessors - 1) / multiprocessors * most_threads(nest);
}

/// Blocks that shall have room beside each other; nothing where ptxas decides.
std::optional<int64_t> blocks_of(const LaunchNest& nest, const RegisterNeeds& needs) {
  const int64_t threads = most_threads(nest);
  if (needs.has_matrices) return 1;
  if (needs.has_turns)
    return threads <= kThreadsOfHalf ? std::optional(2 * kThreadsOfHalf / threads) : std::nullopt;
  const auto all = threads_of_multiprocessor(nest, needs.multiprocessors);
  if (!all || *all > kThreadsWithLoads) return std::nullopt;
  FindsLoads loads;
  loads(nest.body);
  const int64_t registers = std::max(kRegisters / kThreadsWithLoads, loads.words + kOtherRegisters);
  const int64_t blocks = std::min(kRegisters / registers / threads, kMostBlocks);
  return loads.found && loads.are_alone && blocks > 0 ? std::optional(blocks) : std::nullopt;
}

}  // namespace

std::string launch_bounds_of(const LaunchNest& nest, const RegisterNeeds& needs) {
  const std::optional<int64_t> blocks = blocks_of(nest, needs);
  return fmt::format("__launch_bounds__({}{}) ", most_threads(nest),
                     blocks ? fmt::format(", {}", *blocks) : "");
}

}  // namespace kiln::codegen
