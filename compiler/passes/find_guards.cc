// Reads the guards in a loop's body and solves each for the loop's variable: `i*4 + j < n` with j
// in 0..4 holds for all j while i < floordiv(n, 4). The spans come from analysis/solve.h; decided
// here is which of them partition_loops may rely on. Halide's partition_loops and TVM's
// LoopPartition look for `likely` conditions in the same way.
#include "compiler/passes/find_guards.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "compiler/analysis/affine.h"
#include "compiler/ir/build.h"
#include "compiler/ir/mutator.h"

namespace kiln::passes {
namespace {

using namespace ir;
using analysis::Facts;

/// Collects guards with the loops and branches passed on the way: `is_whole_` while nothing but
/// loops and guards without an else stands around.
class FindGuards : public Visitor {
 public:
  FindGuards(const For& loop, const std::vector<VarRef>& around, const Facts& facts,
             std::vector<Facts::Range> all)
      : var_(loop.var),
        extent_(loop.extent),
        around_(around),
        facts_(facts),
        inner_(std::move(all)) {}

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
    if (node.likely) add(node.condition, is_whole_ && !node.else_body, false);
    const bool before = std::exchange(is_whole_, is_whole_ && !node.else_body);
    Visitor::visit(node);
    is_whole_ = before;
  }

  void visit(const Block& block) override {
    const bool before = std::exchange(is_whole_, is_whole_ && block.body.size() == 1);
    Visitor::visit(block);
    is_whole_ = before;
  }

  void visit(const Call& call) override {
    if (call.op == Operator::IfThenElse) add(call.args[0], false, true);
    Visitor::visit(call);
  }

  void add(const Expr& condition, bool is_whole, bool is_choice) {
    for_each_conjunct(condition, [&](const Expr& conjunct) {
      if (!uses_var(conjunct, var_)) return;
      const auto span = analysis::holds_where(conjunct, var_, inner_, facts_);
      const bool ends_whole = is_whole && span && span->exact;
      const bool wants_same = is_choice || (span && span->begin && !ends_whole);
      if (span && (!wants_same || is_same_around(*span)) && !(is_choice && is_rare(*span))) {
        guards_.push_back({conjunct, *span, is_whole, is_choice, inner_});
      } else {
        unusable_.insert(conjunct);
      }
    });
  }

  /// Whether the span does not move with the loops around. Padding that begins elsewhere in each
  /// row would need a loop for each.
  bool is_same_around(const analysis::Span& span) const {
    return std::ranges::none_of(around_, [&](const VarRef& var) {
      return (span.begin && uses_var(span.begin, var)) || (span.end && uses_var(span.end, var));
    });
  }

  /// Whether the condition of an if_then_else that inner loops change may hold for few iterations:
  /// what lies outside them is not decided then.
  bool is_rare(const analysis::Span& span) const {
    if (span.exact) return false;
    const std::optional<int64_t> extent = as_const_int(extent_);
    const std::optional<int64_t> end = span.end ? as_const_int(span.end) : std::nullopt;
    const std::optional<int64_t> begin = span.begin ? as_const_int(span.begin) : std::nullopt;
    if (span.end) return end && (!extent || 2 * *end < *extent);
    return !begin || (extent && 2 * *begin > *extent);
  }

  const VarRef& var_;
  const Expr& extent_;
  const std::vector<VarRef>& around_;
  const Facts& facts_;
  std::vector<Guard> guards_;
  std::unordered_set<Expr> unusable_;
  std::vector<Facts::Range> inner_;
  bool is_whole_ = true;
};

/// The end of work of a statement is the latest one of its parts, and of a guard the earliest
/// iteration from which on it fails for all values of the loops inside.
class EndOfWork {
 public:
  EndOfWork(const For& loop, const Facts& facts) : var_(loop.var), facts_(facts) {}

  /// Of one statement; kNever where it may run in all iterations.
  int64_t of(const Stmt& stmt) {
    if (const auto* block = as<Block>(stmt)) {
      int64_t last = 0;
      for (const Stmt& part : block->body)
        last = std::max(last, of(part));
      return last;
    }
    if (const auto* loop = as<For>(stmt)) {
      inner_.push_back({loop->var, index(0), loop->extent});
      const int64_t end = of(loop->body);
      inner_.pop_back();
      return end;
    }
    if (const auto* node = as<Allocate>(stmt)) return of(node->body);
    if (as<Prefetch>(stmt) != nullptr) return 0;
    if (const auto* node = as<If>(stmt)) {
      const int64_t guarded = std::min(of(node->then_body), end_of(node->condition));
      return node->else_body ? std::max(guarded, of(node->else_body)) : guarded;
    }
    return kNever;
  }

  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

 private:
  int64_t end_of(const Expr& condition) {
    int64_t end = kNever;
    for_each_conjunct(condition, [&](const Expr& conjunct) {
      if (!uses_var(conjunct, var_)) return;
      const Expr fails = analysis::simplify(logical_not(conjunct));
      const auto span = analysis::holds_where(fails, var_, inner_, facts_);
      if (!span || !span->begin) return;
      end = std::min(end, as_const_int(span->begin).value_or(kNever));
    });
    return end;
  }

  const VarRef& var_;
  const Facts& facts_;
  std::vector<Facts::Range> inner_;
};

/// Whether each of the conjuncts, wherever it stands, ends in a serial loop of constant extent
/// inside, and there is a tile written out in such a loop.
class CutInside : public Visitor {
 public:
  CutInside(const std::unordered_set<Expr>& conjuncts, const Facts& facts)
      : conjuncts_(conjuncts), facts_(facts) {}

  bool everywhere() const { return is_everywhere_ && has_tile_; }

 private:
  using Visitor::visit;

  void visit(const For& loop) override {
    has_tile_ = has_tile_ || (loop.loop_kind == LoopKind::Unrolled && !loops_.empty());
    loops_.push_back(&loop);
    Visitor::visit(loop);
    loops_.pop_back();
  }

  void visit(const If& node) override {
    for_each_conjunct(node.condition, [&](const Expr& conjunct) {
      if (conjuncts_.count(conjunct) > 0 && !is_cut(conjunct)) is_everywhere_ = false;
    });
    Visitor::visit(node);
  }

  void visit(const Call& call) override {
    if (call.op == Operator::IfThenElse) {
      for_each_conjunct(call.args[0], [&](const Expr& conjunct) {
        is_everywhere_ = is_everywhere_ && conjuncts_.count(conjunct) == 0;
      });
    }
    Visitor::visit(call);
  }

  bool is_cut(const Expr& conjunct) const {
    std::vector<Facts::Range> inner;
    for (auto loop = loops_.rbegin(); loop != loops_.rend(); ++loop) {
      if ((*loop)->loop_kind == LoopKind::Serial && as_const_int((*loop)->extent)) {
        const auto span = analysis::holds_where(conjunct, (*loop)->var, inner, facts_);
        if (span && span->end) return true;
      }
      inner.push_back({(*loop)->var, index(0), (*loop)->extent});
    }
    return false;
  }

  const std::unordered_set<Expr>& conjuncts_;
  const Facts& facts_;
  std::vector<const For*> loops_;
  bool is_everywhere_ = true;
  bool has_tile_ = false;
};

class DropConjuncts : public Mutator {
 public:
  explicit DropConjuncts(const std::unordered_set<Expr>& dropped) : dropped_(dropped) {}

 private:
  using Mutator::visit;

  /// The condition, itself where all of it stays, or null when nothing is left of it.
  Expr left_of(const Expr& condition) {
    Expr left;
    bool is_whole = true;
    for_each_conjunct(condition, [&](const Expr& conjunct) {
      if (dropped_.count(conjunct) > 0) {
        is_whole = false;
      } else {
        left = left ? logical_and(left, conjunct) : conjunct;
      }
    });
    return is_whole ? condition : left;
  }

  Stmt visit(const If& node) override {
    if (!node.likely) return Mutator::visit(node);
    const Expr left = left_of(node.condition);
    const Stmt then_body = (*this)(node.then_body);
    if (!left) return then_body;
    const Stmt else_body = node.else_body ? (*this)(node.else_body) : Stmt();
    const bool is_same =
        left == node.condition && then_body == node.then_body && else_body == node.else_body;
    return is_same ? Stmt(&node) : If::make(left, then_body, else_body, node.likely);
  }

  Expr visit(const Call& node) override {
    if (node.op != Operator::IfThenElse) return Mutator::visit(node);
    const Expr left = left_of(node.args[0]);
    if (left == node.args[0]) return Mutator::visit(node);
    const Expr chosen = (*this)(node.args[1]);
    if (!left) return chosen;
    return Call::make(node.op, {left, chosen, (*this)(node.args[2])});
  }

  const std::unordered_set<Expr>& dropped_;
};

/// Looks for loops that a guard is all of the body of, and for unrolled ones beside them. In code
/// that is unrolled or becomes vectors all iterations are to be alike, as those of a group of
/// products that one instruction adds.
class EndsInside : public Visitor {
 public:
  explicit EndsInside(const std::unordered_set<Expr>& conjuncts) : conjuncts_(conjuncts) {}

  bool result() const { return everywhere_ && has_ends_ && has_unrolled_; }

 private:
  using Visitor::visit;

  void visit(const For& loop) override {
    const If* guard = as<If>(loop.body);
    const bool ends = loop.loop_kind == LoopKind::Serial && !is_alike_ && guard != nullptr &&
                      !guard->else_body && conjuncts_.contains(guard->condition) &&
                      ends_at(*guard, loop.var);
    if (ends) {
      has_ends_ = true;
      return (*this)(guard->then_body);
    }
    const bool is_unrolled = loop.loop_kind == LoopKind::Unrolled;
    has_unrolled_ = has_unrolled_ || is_unrolled;
    const bool before = is_alike_;
    is_alike_ = is_alike_ || is_unrolled || loop.loop_kind == LoopKind::Vectorized;
    Visitor::visit(loop);
    is_alike_ = before;
  }
  void visit(const If& node) override {
    look_at(node.condition);
    Visitor::visit(node);
  }
  void visit(const Call& call) override {
    if (call.op == Operator::IfThenElse) look_at(call.args[0]);
    Visitor::visit(call);
  }

  static bool ends_at(const If& guard, const VarRef& var) {
    const Binary* order = as<Binary>(guard.condition);
    return order != nullptr && order->op == Operator::Less && !uses_var(order->b, var) &&
           analysis::stride_of(order->a, var) == 1;
  }
  void look_at(const Expr& condition) {
    for_each_conjunct(condition, [&](const Expr& conjunct) {
      everywhere_ = everywhere_ && !conjuncts_.contains(conjunct);
    });
  }

  const std::unordered_set<Expr>& conjuncts_;
  bool everywhere_ = true;
  bool has_ends_ = false;
  bool has_unrolled_ = false;
  bool is_alike_ = false;
};

}  // namespace

void for_each_conjunct(const Expr& condition, const std::function<void(const Expr&)>& visit) {
  const Binary* binary = as<Binary>(condition);
  if (binary == nullptr || binary->op != Operator::And) return visit(condition);
  for_each_conjunct(binary->a, visit);
  for_each_conjunct(binary->b, visit);
}

std::vector<Guard> find_guards(const For& loop, const std::vector<VarRef>& around,
                               const Facts& facts, std::vector<Facts::Range> all) {
  FindGuards find(loop, around, facts, std::move(all));
  find(loop.body);
  return find.take();
}

Expr end_of(const Guard& guard, const For& loop, const Facts& facts) {
  if (guard.span.exact) return guard.span.end;
  const Expr fails = analysis::simplify(logical_not(guard.conjunct));
  const auto span = analysis::holds_where(fails, loop.var, guard.inner, facts);
  return span ? span->begin : Expr();
}

std::optional<int64_t> end_of_work(const For& loop, const Facts& facts) {
  const int64_t end = EndOfWork(loop, facts).of(loop.body);
  return end == EndOfWork::kNever ? std::nullopt : std::optional(std::max<int64_t>(end, 0));
}

bool is_cut_inside(const For& loop, const std::unordered_set<Expr>& conjuncts, const Facts& facts) {
  CutInside walk(conjuncts, facts);
  walk(loop.body);
  return walk.everywhere();
}

bool ends_loops_inside(const For& loop, const std::unordered_set<Expr>& conjuncts) {
  EndsInside walk(conjuncts);
  walk(loop.body);
  return walk.result();
}

Stmt drop_conjuncts(const Stmt& stmt, const std::unordered_set<Expr>& conjuncts) {
  return DropConjuncts(conjuncts)(stmt);
}

}  // namespace kiln::passes
