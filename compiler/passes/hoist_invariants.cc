// Moves a guard out of the loops it does not depend on.
//
//   for t in 0..m { if i < n { S } }    ->    if i < n { for t in 0..m { S } }
//
// Other invariant code is left to LLVM and ptxas, which move it well.
//
// Trivial loop unswitching, as in LLVM's SimpleLoopUnswitch: only a guard that is all of the body
// leaves the loop, so that no code is copied. Bottom up, so that a guard passes all loops that it
// does not depend on.
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/pass_context.h"

namespace kiln::passes {
namespace {

using namespace ir;

class HoistInvariants : public Mutator {
  using Mutator::visit;

  Stmt visit(const For& loop) override {
    const Stmt body = (*this)(loop.body);
    const If* guard = as<If>(body);
    // ThreadIndex loops stay outermost: they are the launch, of which the host knows no guards. A
    // guard that reads memory may change.
    const bool is_launch =
        loop.loop_kind == LoopKind::ThreadIndex || loop.loop_kind == LoopKind::Host;
    if (guard != nullptr && !guard->else_body && !is_launch &&
        !uses_var(guard->condition, loop.var) && !reads_memory(guard->condition)) {
      const Stmt inner = For::make(loop.var, loop.extent, loop.loop_kind, guard->then_body);
      return If::make(guard->condition, inner, nullptr, guard->likely);
    }
    if (body == loop.body) return &loop;
    return For::make(loop.var, loop.extent, loop.loop_kind, loop.thread, body);
  }
};

}  // namespace

ir::Kernel hoist_invariants(ir::Kernel kernel, const PassContext&) {
  HoistInvariants mutator;
  kernel.body = mutator(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
