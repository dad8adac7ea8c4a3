// Simplifies conditions: comparisons of indices are decided by proof both ways, others by looking
// for them among the facts; what both sides of a comparison have in common is cancelled; in
// `a and b` and in choices, each part is simplified under what the parts before it say.
#include "compiler/analysis/simplifier.h"
#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"

namespace kiln::analysis {
namespace {

using ir::Binary;
using ir::Call;
using ir::Expr;
using ir::IntImm;
using ir::Operator;

std::optional<bool> as_const_bool(const Expr& expr) {
  const IntImm* imm = ir::as<IntImm>(expr);
  if (imm == nullptr || imm->type != ir::kBoolType) return std::nullopt;
  return imm->value != 0;
}

bool is_comparison(Operator op) {
  return language::row_of(op).type_rule == language::TypeRule::Compare;
}

/// What the two sides have in common, left out of both.
struct Sides {
  Linear a;
  Linear b;
};
std::optional<Sides> cancelled(const Linear& a, const Linear& b) {
  Sides sides{a, b};
  for (const Term& term : a.terms) {
    const Term* match = b.find(term.product);
    if (match == nullptr) continue;
    const bool same_sign = (match->coefficient < 0) == (term.coefficient < 0);
    const bool less = std::abs(match->coefficient) < std::abs(term.coefficient);
    const Linear common{{same_sign && less ? *match : term}, 0};
    const auto left = add(sides.a, common, -1);
    const auto right = add(sides.b, common, -1);
    if (!left || !right) return std::nullopt;
    sides = {*left, *right};
  }
  if (sides.a.constant == 0 || sides.b.constant == 0) return sides;
  const int64_t common = std::min(sides.a.constant, sides.b.constant);
  const auto left = add(sides.a, linear_constant(common), -1);
  const auto right = add(sides.b, linear_constant(common), -1);
  if (!left || !right) return std::nullopt;
  return Sides{*left, *right};
}

}  // namespace

// Each question is a proof that one side is not less than the other; the opposite is asked for only
// where that fails.
std::optional<bool> Simplifier::decide(Operator op, const Linear& a, const Linear& b) {
  Refuter refuter(knowledge_);
  const auto below = [&](const Linear& x, const Linear& y) {  // x < y
    const auto above = add(y, linear_constant(-1));
    return above && refuter.ordered(x, *above);
  };
  const auto either = [](bool holds, auto fails) {
    return holds ? std::optional(true) : fails() ? std::optional(false) : std::nullopt;
  };
  switch (op) {
    case Operator::Less: return either(below(a, b), [&] { return refuter.ordered(b, a); });
    case Operator::LessEqual: return either(refuter.ordered(a, b), [&] { return below(b, a); });
    case Operator::Greater: return decide(Operator::Less, b, a);
    case Operator::GreaterEqual: return decide(Operator::LessEqual, b, a);
    case Operator::Equal:
      return either(refuter.ordered(a, b) && refuter.ordered(b, a),
                    [&] { return below(a, b) || below(b, a); });
    case Operator::NotEqual: {
      const std::optional<bool> equal = decide(Operator::Equal, a, b);
      return equal ? std::optional(!*equal) : std::nullopt;
    }
    default: return std::nullopt;
  }
}

// Among the facts as they stand, or their opposites: for conditions that are not about sums.
std::optional<bool> Simplifier::known(const Expr& condition) {
  if (const auto value = as_const_bool(condition)) return value;
  for (const Expr& fact : knowledge_.conditions()) {
    if (ir::equal_trees(fact, condition)) return true;
  }
  const Expr opposite = negated(condition);
  for (const Expr& fact : knowledge_.conditions()) {
    if (ir::equal_trees(fact, opposite)) return false;
  }
  return std::nullopt;
}

// Cancelling may not change what wraps, so it is done for operands that cannot.
Expr Simplifier::comparison(const Binary& node) {
  if (node.a->type != ir::kIndexType) {
    const Expr rebuilt = Mutator::visit(node);
    const auto value = known(rebuilt);
    return value ? ir::boolean(*value) : rebuilt;
  }
  const Linear a = distributed(linear(node.a));
  const Linear b = distributed(linear(node.b));
  if (const auto value = decide(node.op, a, b)) return ir::boolean(*value);
  Expr left = atoms_.write(a);
  Expr right = atoms_.write(b);
  if (std::max(atoms_.trust(a), atoms_.trust(b)) != Trust::Wild) {
    if (const std::optional<Sides> sides = cancelled(a, b)) {
      left = atoms_.write(sides->a);
      right = atoms_.write(sides->b);
    }
  }
  const Expr result = Binary::make(node.op, left, right);
  if (const auto value = known(result)) return ir::boolean(*value);
  return ir::equal_trees(result, Expr(&node)) ? Expr(&node) : result;
}

/// The expression simplified where the condition holds. One that reads memory is computed when it
/// does not hold as well, unless `guarded`, so then its indices must stay right without it.
Expr Simplifier::under(const Expr& condition, const Expr& expr, bool guarded) {
  if (!guarded && ir::reads_memory(expr)) return (*this)(expr);
  const Assume assume(knowledge_, condition);
  return (*this)(expr);
}

// b is simplified under a; when b implies a, as i < 8 does i < 32, a goes.
Expr Simplifier::conjunction(const Binary& node) {
  const Expr a = (*this)(node.a);
  if (ir::is_const(a, 0)) return a;
  const Expr b = under(a, node.b);
  if (ir::is_const(a, 1) || ir::is_const(b, 0)) return b;
  if (ir::is_const(b, 1)) return a;
  {
    const Assume assume(knowledge_, b);
    if (follows(a)) return b;
  }
  if (a == node.a && b == node.b) return &node;
  return Binary::make(node.op, a, b);
}

Expr Simplifier::disjunction(const Binary& node) {
  const Expr a = (*this)(node.a);
  if (ir::is_const(a, 1)) return a;
  const Expr b = under(negated(a), node.b);
  if (ir::is_const(a, 0) || ir::is_const(b, 1)) return b;
  if (ir::is_const(b, 0)) return a;
  if (a == node.a && b == node.b) return &node;
  return Binary::make(node.op, a, b);
}

/// select and if_then_else; each branch under its condition.
Expr Simplifier::conditional(const Call& node) {
  const Expr condition = (*this)(node.args[0]);
  if (const auto value = as_const_bool(condition)) return (*this)(node.args[*value ? 1 : 2]);
  const bool computes_one = node.op == Operator::IfThenElse;
  const Expr a = under(condition, node.args[1], computes_one);
  const Expr b = under(negated(condition), node.args[2], computes_one);
  if (ir::equal_trees(a, b)) return a;
  if (condition == node.args[0] && a == node.args[1] && b == node.args[2]) return &node;
  return Call::make(node.op, {condition, a, b});
}

/// As proves(), of what is simplified already: nothing is simplified again, which would double the
/// work at each level of nested conditions.
bool Simplifier::follows(const Expr& condition) {
  if (const auto value = known(condition)) return *value;
  const Binary* binary = ir::as<Binary>(condition);
  if (binary == nullptr) return false;
  if (binary->op == Operator::And) return follows(binary->a) && follows(binary->b);
  if (!is_comparison(binary->op) || binary->a->type != ir::kIndexType) return false;
  return decide(binary->op, atoms_.read(binary->a), atoms_.read(binary->b)).value_or(false);
}

bool Simplifier::proves(const Expr& condition) {
  if (condition->type != ir::kBoolType) return false;
  if (const auto value = known(condition)) return *value;
  if (const Binary* binary = ir::as<Binary>(condition)) {
    if (binary->op == Operator::And) return proves(binary->a) && proves(binary->b);
    if (is_comparison(binary->op) && binary->a->type == ir::kIndexType) {
      return decide(binary->op, linear(binary->a), linear(binary->b)).value_or(false);
    }
  }
  return ir::is_const((*this)(condition), 1);
}

}  // namespace kiln::analysis
