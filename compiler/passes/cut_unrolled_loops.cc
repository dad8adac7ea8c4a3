// Cuts unrolled loops of a GPU's threads where a guard begins to fail for some thread: the copies
// before that have none.
//
//   for t in 0..1024 bind(threadIdx.x) { for j in 0..8 unroll { for l in 0..4 unroll {
//     if j*4096 + t*4 + l < 32000 { S } } } }
//     ->
//   for t in 0..1024 bind(threadIdx.x) {
//     for j in 0..7 unroll { for l in 0..4 unroll { S } }
//     for l in 0..4 unroll { if 28672 + t*4 + l < 32000 { S } } }
//
// There are as many copies as before. NVRTC does not know how many threads there are, so that each
// copy of an exponential was a branch, with its constants made anew: six of 44 instructions for an
// element of a softmax. partition_loops leaves these loops alone, whose guards end at another
// iteration for each thread; here it is asked how many iterations are full for all of them.
//
// The simplify that follows proves away the guards of the first part. Index set splitting, as
// partition_loops does it.
#include <algorithm>
#include <optional>
#include <vector>

#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/launch.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/facts_of.h"
#include "compiler/passes/pass_context.h"

namespace kiln::passes {
namespace {

using namespace ir;
using analysis::Facts;

/// The first iterations of a loop in which conditions hold, whatever the loops inside of it do.
class FullCopies : public Visitor {
 public:
  FullCopies(const For& loop, int64_t extent, Facts& facts)
      : loop_(loop), full_(extent), facts_(facts) {}

  int64_t full() {
    (*this)(loop_.body);
    return full_;
  }

 private:
  using Visitor::visit;

  void visit(const For& loop) override {
    facts_.push_range(loop.var, index(0), loop.extent);
    Visitor::visit(loop);
    facts_.pop();
  }

  void visit(const If& node) override {
    if (uses_var(node.condition, loop_.var) && !reads_memory(node.condition)) {
      const int64_t holds = holds_until(node.condition);
      if (holds > 0) full_ = std::min(full_, holds);
    }
    Visitor::visit(node);
  }

  /// The number of first iterations of which it is proved; bisection, since a guard that holds to
  /// some iteration holds before it.
  int64_t holds_until(const Expr& condition) {
    int64_t known = 0;
    for (int64_t unknown = full_ + 1; unknown - known > 1;) {
      const int64_t end = known + (unknown - known) / 2;
      facts_.push_range(loop_.var, index(0), index(end));
      (analysis::can_prove(condition, facts_) ? known : unknown) = end;
      facts_.pop();
    }
    return known;
  }

  const For& loop_;
  int64_t full_;
  Facts& facts_;
};

class CutUnrolledLoops : public Mutator {
 public:
  explicit CutUnrolledLoops(const Kernel& kernel) : facts_(facts_of_sizes(kernel)) {}

 private:
  using Mutator::visit;

  Stmt visit(const For& loop) override {
    const std::optional<int64_t> extent = as_const_int(loop.extent);
    if (threads_ > 0 && loop.loop_kind == LoopKind::Unrolled && extent && *extent > 1) {
      const int64_t full = FullCopies(loop, *extent, facts_).full();
      if (full < *extent) return cut(loop, full, *extent);
    }
    threads_ += is_thread_axis(loop.thread) ? 1 : 0;
    facts_.push_range(loop.var, index(0), loop.extent);
    const Stmt result = Mutator::visit(loop);
    facts_.pop();
    threads_ -= is_thread_axis(loop.thread) ? 1 : 0;
    return result;
  }

  Stmt cut(const For& loop, int64_t full, int64_t extent) {
    const Stmt first = (*this)(part(loop, 0, full));
    return Block::make({first, (*this)(fresh_copy(part(loop, full, extent)))});
  }

  static Stmt part(const For& loop, int64_t begin, int64_t end) {
    if (end - begin == 1) return substitute(loop.body, {{loop.var, index(begin)}});
    const VarRef var = Var::make(loop.var->name);
    return For::make(var, index(end - begin), LoopKind::Unrolled,
                     substitute(loop.body, {{loop.var, Expr(var) + begin}}));
  }

  Facts facts_;
  int threads_ = 0;  // loops over threads around
};

}  // namespace

Kernel cut_unrolled_loops(Kernel kernel, const PassContext&) {
  CutUnrolledLoops cut(kernel);
  kernel.body = cut(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
