#include <algorithm>
#include <functional>
#include <unordered_set>

#include "compiler/analysis/prove.h"
#include "compiler/analysis/solve.h"
#include "compiler/ir/build.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/facts_of.h"
#include "compiler/passes/passes.h"

namespace kiln::passes {
namespace {

using namespace ir;
using analysis::Facts;

/// Copies of one statement that partitioning may make: three nested tiled loops.
constexpr int kMaxCopies = 8;

/// Minima and maxima in the end of the full tiles: two guards, and no tile at all.
constexpr int kMaxChoices = 2;

void for_each_conjunct(const Expr& condition, const std::function<void(const Expr&)>& visit) {
  const Binary* binary = as<Binary>(condition);
  if (binary == nullptr || binary->op != Operator::And) return visit(condition);
  for_each_conjunct(binary->a, visit);
  for_each_conjunct(binary->b, visit);
}

/// The part of a `likely` guard that fails from some iteration of a loop on.
struct Guard {
  Expr conjunct;
  analysis::Prefix prefix;
  bool is_whole;  // nothing of the loop's body runs when it fails
};

/// Looks for such guards in the body of a loop.
class FindGuards : public Visitor {
 public:
  FindGuards(const VarRef& var, const Facts& facts) : var_(var), facts_(facts) {}

  std::vector<Guard> take() {
    // One condition may stand in several places, in some of which it is not understood.
    std::erase_if(guards_, [&](const Guard& guard) { return unusable_.count(guard.conjunct) > 0; });
    return std::move(guards_);
  }

 private:
  using Visitor::visit;

  void visit(const For& loop) override {
    inner_.push_back({loop.var, index(0), loop.extent});
    Visitor::visit(loop);
    inner_.pop_back();
  }

  void visit(const If& node) override {
    if (node.likely) {
      for_each_conjunct(node.condition, [&](const Expr& conjunct) {
        if (!uses_var(conjunct, var_)) return;
        const auto prefix = analysis::holds_below(conjunct, var_, inner_, facts_);
        if (prefix) {
          guards_.push_back({conjunct, *prefix, is_whole_ && !node.else_body});
        } else {
          unusable_.insert(conjunct);
        }
      });
    }
    const bool before = std::exchange(is_whole_, is_whole_ && !node.else_body);
    Visitor::visit(node);
    is_whole_ = before;
  }

  void visit(const Block& block) override {
    const bool before = std::exchange(is_whole_, is_whole_ && block.body.size() == 1);
    Visitor::visit(block);
    is_whole_ = before;
  }

  const VarRef& var_;
  const Facts& facts_;
  std::vector<Guard> guards_;
  std::unordered_set<Expr> unusable_;
  std::vector<Facts::Range> inner_;
  bool is_whole_ = true;
};

class CountChoices : public Visitor {
 public:
  int count = 0;

 private:
  using Visitor::visit;
  void visit(const Binary& node) override {
    if (node.op == Operator::Min || node.op == Operator::Max) ++count;
    Visitor::visit(node);
  }
};

/// Whether an end is worth computing: one made of many minima, each of which all that stands inside
/// would repeat, costs more than the guard.
bool is_simple(const Expr& end) {
  CountChoices walk;
  walk(end);
  return walk.count <= kMaxChoices;
}

/// Leaves out of `likely` guards what is known to hold.
class DropConjuncts : public Mutator {
 public:
  explicit DropConjuncts(std::unordered_set<Expr> dropped) : dropped_(std::move(dropped)) {}

 private:
  using Mutator::visit;

  Stmt visit(const If& node) override {
    if (!node.likely) return Mutator::visit(node);
    Expr left = boolean(true);
    for_each_conjunct(node.condition, [&](const Expr& conjunct) {
      if (dropped_.count(conjunct) == 0) left = logical_and(left, conjunct);
    });
    if (is_const(left, 1)) return (*this)(node.then_body);
    const Stmt then_body = (*this)(node.then_body);
    const Stmt else_body = node.else_body ? (*this)(node.else_body) : Stmt();
    return If::make(left, then_body, else_body, node.likely);
  }

  const std::unordered_set<Expr> dropped_;
};

class PartitionLoops : public Mutator {
 public:
  explicit PartitionLoops(const Kernel& kernel) : facts_(facts_of_sizes(kernel)) {}

 private:
  using Mutator::visit;

  Stmt visit(const For& loop) override {
    if (loop.loop_kind != LoopKind::ThreadIndex) {
      FindGuards find(loop.var, facts_);
      find(loop.body);
      const std::vector<Guard> guards = find.take();
      if (!guards.empty()) return partition(loop, guards);
    }
    if (loop.loop_kind == LoopKind::ThreadIndex) threads_.push_back(loop.var);
    const Stmt result =
        with_body(loop, loop.extent, body_of(loop.var, index(0), loop.extent, loop.body));
    if (loop.loop_kind == LoopKind::ThreadIndex) threads_.pop_back();
    return result;
  }

  Stmt visit(const If& node) override {
    const bool is_fact = !reads_memory(node.condition);  // else the body may change it
    if (is_fact) facts_.push_condition(node.condition);
    const Stmt then_body = (*this)(node.then_body);
    if (is_fact) facts_.pop();
    const Stmt else_body = node.else_body ? (*this)(node.else_body) : Stmt();
    if (then_body == node.then_body && else_body == node.else_body) return &node;
    return If::make(node.condition, then_body, else_body, node.likely);
  }

  static Stmt with_body(const For& loop, const Expr& extent, const Stmt& body) {
    if (extent == loop.extent && body == loop.body) return &loop;
    return For::make(loop.var, extent, loop.loop_kind, loop.thread, body);
  }

  /// The body for these values of the variable, itself partitioned.
  Stmt body_of(const VarRef& var, const Expr& begin, const Expr& end, const Stmt& body) {
    facts_.push_range(var, begin, end);
    const Stmt result = (*this)(body);
    facts_.pop();
    return result;
  }

  bool proves(const Expr& condition) { return analysis::can_prove(condition, facts_); }

  Stmt partition(const For& loop, const std::vector<Guard>& guards) {
    Expr full = loop.extent;
    std::unordered_set<Expr> conjuncts;
    for (const Guard& guard : guards) {
      full = min(guard.prefix.end, full);
      conjuncts.insert(guard.conjunct);
    }
    full = analysis::simplify(max(full, index(0)), facts_);
    const bool is_uniform =
        std::none_of(threads_.begin(), threads_.end(),
                     [&](const VarRef& thread) { return uses_var(full, thread); });
    // A guard of the whole body that does not depend on inner loops: there is no rest.
    const bool no_rest = guards.size() == 1 && guards[0].is_whole && guards[0].prefix.exact;
    // Vectors and unrolled loops are of constant extent, and not worth a second copy.
    const bool wants_constant =
        loop.loop_kind == LoopKind::Vectorized || loop.loop_kind == LoopKind::Unrolled;
    const bool keeps_kind = !wants_constant || (no_rest && as_const_int(full));
    const bool is_worth_it =
        (no_rest || 2 * copies_ <= kMaxCopies) && !proves(less_equal(full, index(0)));
    if (!is_uniform || !is_worth_it || !keeps_kind || !is_simple(full)) {
      return with_body(loop, loop.extent, body_of(loop.var, index(0), loop.extent, loop.body));
    }

    const bool all_full = no_rest || proves(less_equal(loop.extent, full));
    if (!all_full) copies_ *= 2;
    const Stmt clean = body_of(loop.var, index(0), full, DropConjuncts(conjuncts)(loop.body));
    Stmt result = with_body(loop, full, clean);
    if (!all_full) {
      const Stmt rest = fresh_copy(body_of(loop.var, full, loop.extent, loop.body));
      copies_ /= 2;
      // One parallel region stays one: starting another costs more than the branch.
      result = loop.loop_kind == LoopKind::Parallel
                   ? with_body(loop, loop.extent, If::make(less(loop.var, full), clean, rest))
                   : Block::make({result, rest_of(loop, full, rest)});
    }
    return result;
  }

  Stmt rest_of(const For& loop, const Expr& full, const Stmt& rest) {
    const Expr left = analysis::simplify(loop.extent - full, facts_);
    if (proves(less_equal(left, index(1)))) {
      return If::make(less(full, loop.extent), substitute(rest, {{loop.var, full}}));
    }
    const VarRef var = Var::make(loop.var->name);
    return For::make(var, left, loop.loop_kind, loop.thread,
                     substitute(rest, {{loop.var, full + var}}));
  }

  Facts facts_;
  std::vector<VarRef> threads_;  // of the loops around the current place
  int copies_ = 1;               // of it, so far
};

}  // namespace

ir::Kernel partition_loops(ir::Kernel kernel, const PassContext& context) {
  kernel.body = PartitionLoops(kernel)(kernel.body);
  return simplify(std::move(kernel), context);
}

}  // namespace kiln::passes
