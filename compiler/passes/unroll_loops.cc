// Replaces each loop marked `unroll` by its iterations, in order.
//
//   for i in 0..3 unroll { A[i] = B[i] }    ->    A[0] = B[0]  A[1] = B[1]  A[2] = B[2]
//
// Runs after vectorize_loops, which wants the loops whole, and before simplify, which folds the
// indices this leaves behind.
//
// Writes the iterations out, innermost loops first. The limit is on copies of one statement by all
// unrolled loops around it, asked before anything is copied: four loops of 100 around each other
// would fill the memory first.
#include <limits>
#include <optional>
#include <utility>

#include "compiler/ir/build.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/ir/print.h"
#include "compiler/passes/pass_context.h"
#include "runtime/core/error.h"

namespace kiln::passes {
namespace {

using namespace ir;

class UnrollLoops : public Mutator {
 public:
  explicit UnrollLoops(const CompileLimits& limits) : limits_(limits) {}

 private:
  using Mutator::visit;

  Stmt visit(const For& loop) override {
    if (loop.loop_kind != LoopKind::Unrolled) return Mutator::visit(loop);

    const std::optional<int64_t> extent = as_const_int(loop.extent);
    if (!extent) {
      fail(ErrorKind::Unsupported, "UNROLL_EXTENT",
           "cannot unroll {}: its extent {} is not a constant", loop.var->name, loop.extent);
    }
    // The nest counts: each loop multiplies the copies of what stands inside.
    int64_t copies = 0;
    if (__builtin_mul_overflow(copies_, *extent, &copies)) {
      copies = std::numeric_limits<int64_t>::max();
    }
    if (copies > limits_.unrolled_iterations) {
      fail(ErrorKind::ResourceExhausted, "UNROLL_LIMIT",
           "unrolling {} makes {} copies of its body; the limit is {}", loop.var->name, copies,
           limits_.unrolled_iterations);
    }

    const int64_t outer = std::exchange(copies_, copies);
    const Stmt body = (*this)(loop.body);
    copies_ = outer;

    std::vector<Stmt> iterations;
    for (int64_t i = 0; i < *extent; ++i) {
      iterations.push_back(substitute(body, {{loop.var, index(i)}}));
    }
    return Block::make(std::move(iterations));
  }

  const CompileLimits& limits_;
  int64_t copies_ = 1;  // of the statement being visited, by the unrolled loops around it
};

}  // namespace

ir::Kernel unroll_loops(ir::Kernel kernel, const PassContext& context) {
  kernel.body = UnrollLoops(context.options.limits)(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
