// Gives loops bound to GPU indices a meaning on a CPU, and says so in a note.
//
//   for blockIdx.x in 0..n bind { for threadIdx.x in 0..16 bind { C[...] = ... } }
//     ->
//   for blockIdx.x in 0..n parallel { for threadIdx.x in 0..16 vectorize { C[...] = ... } }
//
// A threadIdx loop becomes vectors where it is the innermost of them, its extent is a constant and
// what it stores lies side by side; else it runs one iteration after the other.
//
// Decides what a bound loop becomes on a CPU: blocks are independent of each other and run on the
// cores; threads of a block are a loop, as vectors where what they store is contiguous, as in MCUDA
// (Stratton, Stone and Hwu, 2008). vthread and threads that do not suit run one after the other.
#include <optional>

#include "compiler/analysis/affine.h"
#include "compiler/ir/build.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/launch.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/notes.h"
#include "compiler/passes/pass_context.h"

namespace kiln::passes {
namespace {

using namespace ir;

/// Whether the body of a thread loop is worth vectors: nothing in it is a vector already or runs on
/// other threads, and whatever depends on the variable lies side by side in memory.
class SuitsVectors : public Visitor {
 public:
  explicit SuitsVectors(const VarRef& var) : var_(var) {}
  bool result = true;

 private:
  using Visitor::visit;

  void visit(const For& loop) override {
    const bool is_plain =
        loop.loop_kind == LoopKind::Serial || loop.loop_kind == LoopKind::Unrolled;
    if (!is_plain || uses_var(loop.extent, var_)) result = false;
    Visitor::visit(loop);
  }

  void visit(const Check& check) override {
    if (uses_var(check.index, var_) || uses_var(check.extent, var_)) result = false;
  }

  void visit(const Store& store) override {
    if (store.indices.empty()) {
      result = false;
      return;
    }
    for (size_t d = 0; d < store.indices.size(); ++d) {
      const int64_t wanted = d + 1 == store.indices.size() ? 1 : 0;
      if (analysis::stride_of(store.indices[d], var_) != wanted) result = false;
    }
    Visitor::visit(store);
  }

  const VarRef& var_;
};

class BindToCores : public Mutator {
 public:
  explicit BindToCores(Kernel& kernel) : kernel_(kernel) {}

 private:
  using Mutator::visit;

  Stmt visit(const For& loop) override {
    if (loop.loop_kind != LoopKind::ThreadIndex) return Mutator::visit(loop);
    const LoopKind kind = kind_of(loop);
    add_note(kernel_, fmt::format("{} {}", name_of(loop.thread), how(kind)));
    return For::make(loop.var, loop.extent, kind, (*this)(loop.body));
  }

  static LoopKind kind_of(const For& loop) {
    if (is_block_axis(loop.thread)) return LoopKind::Parallel;
    const std::optional<int64_t> extent = as_const_int(loop.extent);
    if (loop.thread == ThreadAxis::VThread || !extent || *extent < 2) return LoopKind::Serial;
    SuitsVectors walk(loop.var);
    walk(loop.body);
    return walk.result ? LoopKind::Vectorized : LoopKind::Serial;
  }

  static std::string_view how(LoopKind kind) {
    switch (kind) {
      case LoopKind::Parallel: return "runs on the cores of the CPU";
      case LoopKind::Vectorized: return "runs as vectors on the CPU";
      default: return "runs serially on the CPU";
    }
  }

  Kernel& kernel_;
};

}  // namespace

ir::Kernel bind_to_cores(ir::Kernel kernel, const PassContext&) {
  BindToCores mutator(kernel);
  kernel.body = mutator(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
