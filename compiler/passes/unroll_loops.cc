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
//
// Where a loop is a GPU's it keeps its mark: NVRTC, told to, unrolls it into the same instructions
// in less time than it takes to read them. It does so up to a size, past which elements of a
// thread's arrays would lie in memory; loops that may become larger are written out here.
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

/// About how many instructions a statement becomes that NVRTC counts before it unrolls: accesses,
/// with their addresses, and functions.
class UnrolledSize : public Visitor {
 public:
  static int64_t of(const Stmt& stmt) {
    UnrolledSize walk;
    walk(stmt);
    return walk.size_;
  }

 private:
  static constexpr int64_t kAccess = 2;
  static constexpr int64_t kFunction = 20;

  using Visitor::visit;
  void visit(const For& loop) override {
    const bool is_copied = loop.loop_kind == LoopKind::Unrolled;
    const int64_t outer = copies_;
    if (is_copied) copies_ *= as_const_int(loop.extent).value_or(1);
    Visitor::visit(loop);
    copies_ = outer;
  }
  void visit(const ir::Call& node) override {
    const bool chooses = node.op == Operator::Select || node.op == Operator::IfThenElse;
    size_ += copies_ * (chooses ? 1 : kFunction);
    Visitor::visit(node);
  }
  void element(const BufferRef& buffer, const std::vector<Expr>& indices) override {
    size_ += copies_ * kAccess;
    Visitor::element(buffer, indices);
  }

  int64_t size_ = 0;
  int64_t copies_ = 1;
};

/// Half of what NVRTC unrolls where it is told to, since the size is an estimate.
constexpr int64_t kMostOfNvrtc = 8192;

class UnrollLoops : public Mutator {
 public:
  UnrollLoops(const CompileLimits& limits, bool is_for_threads)
      : limits_(limits), is_for_threads_(is_for_threads) {}

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

    if (is_for_threads_) {
      const Stmt kept = For::make(loop.var, loop.extent, LoopKind::Unrolled, body);
      if (UnrolledSize::of(kept) <= kMostOfNvrtc) return kept;
    }
    std::vector<Stmt> iterations;
    for (int64_t i = 0; i < *extent; ++i) {
      iterations.push_back(substitute(body, {{loop.var, index(i)}}));
    }
    return Block::make(std::move(iterations));
  }

  const CompileLimits& limits_;
  const bool is_for_threads_;
  int64_t copies_ = 1;  // of the statement being visited, by the unrolled loops around it
};

}  // namespace

ir::Kernel unroll_loops(ir::Kernel kernel, const PassContext& context) {
  kernel.body =
      UnrollLoops(context.options.limits, context.target.traits().has_threads)(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
