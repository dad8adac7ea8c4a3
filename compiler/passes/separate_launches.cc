// Lets the host run a loop of which each iteration needs what other blocks did in those before.
//
//   for t in 0..m { for b in 0..n bind(blockIdx.x) { S[t + 1, b] = S[t, n - 1 - b] } }
//     ->
//   for t in 0..m host { for b in 0..n bind(blockIdx.x) { S[t + 1, b] = S[t, n - 1 - b] } }
//
// The statements of its body are launches one after the other. A loop that one launch can run
// stays in it. Stands before insert_barriers, which refuses what is left.
//
// Where blocks of a launch would need what other blocks did in the iteration before, the host runs
// the loop: launches are the one thing that orders blocks. Loop distribution at the level of
// launches (Allen and Kennedy, Optimizing Compilers for Modern Architectures, 5.6), asked for only
// where one launch would be wrong.
#include <algorithm>

#include "compiler/ir/build.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/launch.h"
#include "compiler/passes/notes.h"
#include "compiler/passes/pass_context.h"
#include "compiler/passes/shared_buffers.h"

namespace kiln::passes {
namespace {

using namespace ir;

class SeparateLaunches {
 public:
  explicit SeparateLaunches(Kernel& kernel) : kernel_(kernel) {}

  Stmt operator()(const Stmt& launched, const HostLoops& around) const {
    const LaunchAxes axes(launched);
    const SharedBuffers shared(kernel_, launched, axes, around);
    if (!shared.across_blocks) return launched;
    if (const For* loop = as<For>(launched); loop && may_run_on_host(*loop, around)) {
      add_note(kernel_, fmt::format("each step of {} is launches of its own: blocks depend on each "
                                    "other through {}",
                                    loop->var->name, shared.across_blocks->buffer->name));
      return parts_of(For::make(loop->var, loop->extent, LoopKind::Host, loop->body));
    }
    if (const If* node = as<If>(launched)) return under_guard(*node, around);
    return launched;
  }

 private:
  Stmt parts_of(const Stmt& stmt) const { return map_launches(stmt, *this); }

  /// One loop of the host is a number that each launch is given.
  bool may_run_on_host(const For& loop, const HostLoops& around) const {
    if (loop.loop_kind != LoopKind::Serial || !around.empty()) return false;
    return is_known_to_host(loop.extent, kernel_.sizes);
  }

  /// A guard around several statements is one around each.
  Stmt under_guard(const If& node, const HostLoops& around) const {
    const Block* block = as<Block>(node.then_body);
    if (block == nullptr || node.else_body || reads_memory(node.condition)) return &node;
    std::vector<Stmt> parts;
    for (const Stmt& stmt : block->body)
      parts.push_back((*this)(If::make(node.condition, stmt, nullptr, node.likely), around));
    return Block::make(std::move(parts));
  }

  Kernel& kernel_;
};

}  // namespace

ir::Kernel separate_launches(ir::Kernel kernel, const PassContext&) {
  const SeparateLaunches separate(kernel);
  kernel.body = map_launches(kernel.body, separate);
  return kernel;
}

}  // namespace kiln::passes
