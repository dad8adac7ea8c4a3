// Replaces the variable of a loop marked `vectorize` by a vector of its values.
//
//   for i in 0..8 vectorize { for k in 0..n { C[i] = C[i] + A[k]*B[k*8 + i] } }
//     ->
//   for k in 0..n { C[ramp(0, 1, 8)] = C[ramp(0, 1, 8)] + broadcast(A[k], 8)*B[ramp(k*8, 1, 8)] }
//
// Guards that depend on the variable become predicates; `s = s op f(i)` becomes a VectorReduce; a
// long loop becomes a loop over vectors of 64 lanes, and what is left of it an epilogue of vectors
// of 32, 16, .. lanes. Where that cannot be done (an inner loop whose extent depends on the
// variable, a Check of it) the loop runs serially, with a note.
//
// Strip-mines each vectorised loop: full vectors of 64 lanes, then an epilogue of one vector for
// each power of two in what is left. 100 elements are vectors of 64, 32 and 4 lanes.
// vector_lanes.cc makes the vectors; a loop that it cannot do runs serially, and a note says why.
// On a GPU, whose threads are the lanes, a vector is what a thread moves at once
// (vector_accesses.cc).
#include <algorithm>
#include <bit>
#include <optional>

#include "compiler/ir/build.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/ir/print.h"
#include "compiler/passes/notes.h"
#include "compiler/passes/pass_context.h"
#include "compiler/passes/vector_accesses.h"
#include "compiler/passes/vector_lanes.h"
#include "runtime/core/error.h"

namespace kiln::passes {
namespace {

using namespace ir;

/// Lanes of one vector: of float32, four registers of 64 bytes or eight of 32. Enough independent
/// instructions to hide their latency, few enough that a handful of values stays in registers.
constexpr int64_t kLanes = 64;

class HasVectorLoop : public Visitor {
 public:
  bool found = false;

 private:
  using Visitor::visit;
  void visit(const For& loop) override {
    found = found || loop.loop_kind == LoopKind::Vectorized;
    Visitor::visit(loop);
  }
};

class VectorizeLoops : public Mutator {
 public:
  VectorizeLoops(Kernel& kernel, const PassContext& context)
      : kernel_(kernel),
        has_threads_(context.target.traits().has_threads),
        reassociate_(!context.options.strict) {}

 private:
  using Mutator::visit;

  Stmt visit(const For& loop) override {
    if (loop.loop_kind != LoopKind::Vectorized) return Mutator::visit(loop);

    const std::optional<int64_t> extent = as_const_int(loop.extent);
    if (!extent) {
      fail(ErrorKind::Unsupported, "VECTORIZE_EXTENT",
           "cannot vectorize {}: its extent {} is not a constant", loop.var->name, loop.extent);
    }
    const Stmt body = (*this)(loop.body);
    if (has_threads_) {
      const Stmt moved = with_vector_accesses(loop, body, *extent, is_background_);
      return moved ? moved : serial(loop, body, "nothing of it is known to lie side by side");
    }
    // Lanes of lanes have no form here; the obstacles that the walk below finds come too late for
    // that.
    HasVectorLoop inner;
    inner(loop.body);
    if (inner.found) return serial(loop, body, "a loop in it is a vector already");

    std::vector<Stmt> parts;
    const int64_t strips = *extent / kLanes;
    if (strips > 0) {
      const VarRef strip = Var::make(loop.var->name + ".strip");
      VectorLanes lanes = of(loop, body, strips == 1 ? index(0) : strip * kLanes, kLanes);
      if (!lanes.body) return serial(loop, body, lanes.obstacle);
      parts.push_back(strips == 1 ? lanes.body
                                  : For::make(strip, index(strips), LoopKind::Serial, lanes.body));
    }
    // Powers of two: LLVM takes others to pieces, element by element.
    for (int64_t done = strips * kLanes; done < *extent;) {
      const auto count =
          static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(*extent - done)));
      VectorLanes lanes = of(loop, body, index(done), count);
      if (!lanes.body) return serial(loop, body, lanes.obstacle);
      parts.push_back(lanes.body);
      done += count;
    }
    return Block::make(std::move(parts));
  }

  Stmt visit(const Background& node) override {
    is_background_ = true;
    const Stmt result = Mutator::visit(node);
    is_background_ = false;
    return result;
  }

  /// One vector of the loop, from `base` on; of one lane it is the body itself.
  VectorLanes of(const For& loop, const Stmt& body, const Expr& base, int64_t lanes) const {
    if (lanes == 1) return {substitute(body, {{loop.var, base}}), ""};
    return vectorize(body, loop.var, base, static_cast<int>(lanes), reassociate_);
  }

  /// The mark is a wish: a loop that cannot have it runs all the same, and the note says why.
  Stmt serial(const For& loop, const Stmt& body, std::string_view why) {
    add_note(kernel_, fmt::format("{} runs serially, not as vectors: {}", loop.var->name, why));
    return For::make(loop.var, loop.extent, LoopKind::Serial, body);
  }

  Kernel& kernel_;
  const bool has_threads_;
  const bool reassociate_;
  bool is_background_ = false;  // around
};

}  // namespace

ir::Kernel vectorize_loops(ir::Kernel kernel, const PassContext& context) {
  VectorizeLoops mutator(kernel, context);
  kernel.body = mutator(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
