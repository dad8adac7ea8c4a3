// Nested parallel loops become one.
//
//   for i in 0..n parallel { for j in 0..m parallel { S } }
//     ->
//   for i.j.fused in 0..n*m parallel { S with i = floordiv(i.j.fused, m), j = floormod(...) }
//
// A parallel loop in another one that does more runs serially, with a note.
//
// Fuses parallel loops that stand directly in each other, so that the runtime divides all
// iterations at once and starts one region instead of one for each iteration outside. Blocks of
// parallel loops and guards around them, as partition_loops leaves them, are rearranged first until
// loops do stand in each other. Nested parallelism that is left runs serially: the cores have work
// already.
#include <algorithm>

#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/notes.h"
#include "compiler/passes/pass_context.h"

namespace kiln::passes {
namespace {

using namespace ir;

const For* as_parallel(const Stmt& stmt) {
  const For* loop = as<For>(stmt);
  return loop != nullptr && loop->loop_kind == LoopKind::Parallel ? loop : nullptr;
}

class CollapseParallel : public Mutator {
 public:
  explicit CollapseParallel(Kernel& kernel) : kernel_(kernel) {}

 private:
  using Mutator::visit;

  Stmt visit(const For& loop) override {
    if (loop.loop_kind != LoopKind::Parallel) return Mutator::visit(loop);
    if (around_ != nullptr) {
      return serial(loop,
                    fmt::format("{} is parallel and runs serially inside {}, which is parallel",
                                loop.var->name, around_->name));
    }
    return collapse(loop);
  }

  Stmt collapse(const For& loop) {
    if (const Block* block = as<Block>(loop.body)) {
      // Iterations of a parallel loop do not depend on each other, so it may be split between two
      // statements; worth it where each part then collapses. Common after partition_loops.
      if (!block->body.empty() && std::ranges::all_of(block->body, as_parallel)) {
        std::vector<Stmt> parts;
        for (const Stmt& inner : block->body) {
          parts.push_back((*this)(For::make(loop.var, loop.extent, LoopKind::Parallel, inner)));
        }
        return Block::make(std::move(parts));
      }
    }
    const Stmt body = with_guard_inside(loop.body);
    const For* inner = as_parallel(body);
    // Each iteration of the fused loop computes the extent, maybe after others have stored.
    const bool is_fixed = inner != nullptr && !uses_var(inner->extent, loop.var) &&
                          !reads_memory(inner->extent) && !reads_memory(loop.extent);
    if (is_fixed) {
      const VarRef fused = Var::make(fmt::format("{}.{}.fused", loop.var->name, inner->var->name));
      const Stmt fused_body =
          substitute(inner->body, {{loop.var, floordiv(fused, inner->extent)},
                                   {inner->var, floormod(fused, inner->extent)}});
      return (*this)(For::make(fused, loop.extent * inner->extent, LoopKind::Parallel, fused_body));
    }
    around_ = loop.var.get();
    const Stmt result = Mutator::visit(loop);
    around_ = nullptr;
    return result;
  }

  /// `if c { for j parallel { S } } else { for j parallel { T } }`, as partition_loops leaves it,
  /// as one loop over j with the choice in it; anything else as it is.
  static Stmt with_guard_inside(const Stmt& stmt) {
    const If* node = as<If>(stmt);
    const For* inner = node != nullptr ? as_parallel(node->then_body) : nullptr;
    // What the condition reads may have been stored to by then: it is asked once, not in each
    // iteration.
    if (inner == nullptr || reads_memory(node->condition)) return stmt;
    Stmt other;
    if (node->else_body) {
      const For* alike = as_parallel(node->else_body);
      if (alike == nullptr || !equal_trees(alike->extent, inner->extent)) return stmt;
      other = substitute(alike->body, {{alike->var, inner->var}});
    }
    return For::make(inner->var, inner->extent, LoopKind::Parallel,
                     If::make(node->condition, inner->body, other, node->likely));
  }

  /// The mark is a wish, so a loop that cannot have it runs serially and says so.
  Stmt serial(const For& loop, std::string note) {
    add_note(kernel_, std::move(note));
    return For::make(loop.var, loop.extent, LoopKind::Serial, (*this)(loop.body));
  }

  Kernel& kernel_;
  const Var* around_ = nullptr;  // the parallel loop being visited
};

}  // namespace

ir::Kernel collapse_parallel(ir::Kernel kernel, const PassContext&) {
  CollapseParallel mutator(kernel);
  kernel.body = mutator(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
