// Writes out as many iterations of a loop that awaits copies as its memories take turns.
//
//   for k in 0..64 { await 1  barrier  background { if k + 2 < 64 { s[(k + 2) % 3] = A[k + 2] } }
//                    C[0] += s[k % 3] }
//     ->
//   for k in 0..20 {
//     await 1  barrier  background { s[2] = A[3*k + 2] }  C[0] += s[0]
//     await 1  barrier  background { s[0] = A[3*k + 3] }  C[0] += s[1]
//     await 1  barrier  background { s[1] = A[3*k + 4] }  C[0] += s[2] }
//   for k in 0..4 { the same as before, of k + 60 }
//
// Iterations that may have nothing left to copy stay a loop, behind the others. Only innermost
// loops are written out, so that code grows by that number once. After insert_barriers, which tells
// memories in turn by their remainders; before flatten_storage, which hides them.
//
// Which memory is meant is a constant then, a part of each instruction's address (modulo variable
// expansion; Lam, 1988), and nothing in the loop asks whether there is more to copy, so that
// instructions of several iterations can be mixed.
#include <algorithm>

#include "compiler/analysis/affine.h"
#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/barrier_effects.h"
#include "compiler/passes/facts_of.h"
#include "compiler/passes/pass_context.h"

namespace kiln::passes {
namespace {

using namespace ir;

/// Of an iteration that is copied: NVRTC takes its time for each copy.
constexpr int64_t kMostStores = 1024;

/// What stands in a loop: something that is awaited, and another loop that awaits.
class FindAwaits : public Visitor {
 public:
  explicit FindAwaits(const Stmt& body) { (*this)(body); }
  bool found = false;
  bool is_in_loop = false;

 private:
  using Visitor::visit;
  void visit(const Await&) override {
    found = true;
    is_in_loop = is_in_loop || loops_ > 0;
  }
  void visit(const For& loop) override {
    ++loops_;
    Visitor::visit(loop);
    --loops_;
  }
  int loops_ = 0;
};

/// Stores of an iteration, with the copies that unrolled loops will make of them.
class CountStores : public Visitor {
 public:
  explicit CountStores(const Stmt& body) { (*this)(body); }
  int64_t count = 0;

 private:
  using Visitor::visit;
  void visit(const For& loop) override {
    const int64_t outer = copies_;
    const bool is_unrolled = loop.loop_kind == LoopKind::Unrolled;
    const int64_t extent = is_unrolled ? as_const_int(loop.extent).value_or(1) : 1;
    copies_ = std::min(copies_ * std::clamp<int64_t>(extent, 0, kMostStores + 1), kMostStores + 1);
    Visitor::visit(loop);
    copies_ = outer;
  }
  void visit(const Store& store) override {
    count += copies_;
    Visitor::visit(store);
  }
  int64_t copies_ = 1;
};

/// Whether what is copied in the background lies equally far apart from iteration to iteration, so
/// that pointers move along. Places of a window do not: then code would only be longer.
class MovesEvenly : public Visitor {
 public:
  MovesEvenly(const For& loop) : var_(loop.var) { (*this)(loop.body); }
  bool result = true;

 private:
  using Visitor::visit;
  void visit(const Background& node) override {
    is_background_ = true;
    Visitor::visit(node);
    is_background_ = false;
  }
  void visit(const Load& load) override {
    for (const Expr& place : load.indices)
      result = result && (!is_background_ || analysis::stride_of(place, var_));
    Visitor::visit(load);
  }
  const VarRef& var_;
  bool is_background_ = false;  // around
};

/// How many memories the iterations use in turn; 1 where there is no such memory.
int64_t turns_of(const For& loop) {
  int64_t most = 1;
  for (const auto& [buffer, turns] : copies_in_turn(loop))
    most = std::max(most, turns.copies);
  return most;
}

/// Without the conditions that are proved to hold.
class DropGuards : public Mutator {
 public:
  explicit DropGuards(const analysis::Facts& facts) : facts_(facts) {}

 private:
  using Mutator::visit;
  Stmt visit(const If& node) override {
    if (!analysis::can_prove(node.condition, facts_)) return Mutator::visit(node);
    return (*this)(node.then_body);
  }
  const analysis::Facts& facts_;
};

class UnrollTurns : public Mutator {
 public:
  explicit UnrollTurns(const Kernel& kernel) : facts_(facts_of_sizes(kernel)) {}

 private:
  using Mutator::visit;

  Stmt visit(const For& loop) override {
    const FindAwaits awaits(loop.body);
    if (!awaits.found) return &loop;
    const bool is_own = loop.loop_kind == LoopKind::Serial && !awaits.is_in_loop &&
                        CountStores(loop.body).count <= kMostStores && MovesEvenly(loop).result;
    const int64_t turns = is_own ? turns_of(loop) : 1;
    return turns > 1 ? written_out(loop, turns) : Mutator::visit(loop);
  }

  /// Copies are one iteration less ahead than there are memories.
  Stmt written_out(const For& loop, int64_t turns) {
    const Expr sure = max(loop.extent - (turns - 1), index(0));
    const Expr rounds = analysis::simplify(floordiv(sure, index(turns)));
    if (is_const(rounds, 0)) return &loop;
    const VarRef round = Var::make(loop.var->name);
    const VarRef rest = Var::make(loop.var->name);
    // A round is one only where all its copies are of iterations that there are.
    facts_.push_condition(less(round * turns + (2 * turns - 2), loop.extent));
    std::vector<Stmt> iterations;
    for (int64_t i = 0; i < turns; ++i)
      iterations.push_back(DropGuards(facts_)(iteration(loop, round * turns + i)));
    facts_.pop();
    const Expr last = analysis::simplify(loop.extent - rounds * turns);
    return Block::make(
        {For::make(round, rounds, loop.loop_kind, loop.thread, Block::make(iterations)),
         For::make(rest, last, loop.loop_kind, loop.thread,
                   iteration(loop, rounds * turns + rest))});
  }

  static Stmt iteration(const For& loop, const Expr& which) {
    return fresh_copy(substitute(loop.body, {{loop.var, which}}));
  }

  analysis::Facts facts_;
};

}  // namespace

ir::Kernel unroll_turns(ir::Kernel kernel, const PassContext&) {
  kernel.body = UnrollTurns(kernel)(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
