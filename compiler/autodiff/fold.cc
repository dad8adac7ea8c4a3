// Simplifies expressions as they are made. Floating arithmetic is left alone but for what
// differentiation itself brings along: sums with 0, products with 0 and 1, signs.
//
//   0 + g*1 -> g     floordiv(3*i + 6, 3) -> i + 2     select(i >= 0, x, 0) -> x
#include "compiler/autodiff/builder.h"
#include "compiler/language/evaluate/scalar.h"

namespace kiln::autodiff {

using namespace language;

std::optional<ExprId> Builder::folded(Operator op, const std::vector<ExprId>& operands) {
  if (auto logic = folded_logic(op, operands)) return logic;
  const DType first = type(operands[0]);
  if (first == DType::Int64) return folded_index(op, operands);
  if (is_float(first)) return folded_float(op, operands);
  return std::nullopt;
}

std::optional<ExprId> Builder::folded_logic(Operator op, const std::vector<ExprId>& operands) {
  const std::optional<bool> first =
      type(operands[0]) == DType::Bool ? as_bool(operands[0]) : std::nullopt;
  switch (op) {
    case Operator::Select:
    case Operator::IfThenElse:
      if (first) return operands[*first ? 1 : 2];
      if (operands[1] == operands[2]) return operands[1];
      return std::nullopt;
    case Operator::And:
    case Operator::Or: {
      const bool neutral = op == Operator::And;
      const std::optional<bool> second = as_bool(operands[1]);
      if (first) return *first == neutral ? operands[1] : operands[0];
      if (second) return *second == neutral ? operands[0] : operands[1];
      if (operands[0] == operands[1]) return operands[0];
      return std::nullopt;
    }
    case Operator::Not: {
      if (first) return boolean(!*first);
      const auto* inner = as<Operation>(operands[0]);
      if (inner != nullptr && inner->op == Operator::Not) return inner->operands[0];
      return std::nullopt;
    }
    default: return std::nullopt;
  }
}

std::optional<ExprId> Builder::folded_float(Operator op, const std::vector<ExprId>& operands) {
  const DType t = type(operands[0]);
  const auto is = [&](size_t i, double value) { return is_number(operands[i], value); };
  const auto negated = [&](size_t i) -> std::optional<ExprId> {
    const auto* inner = as<Operation>(operands[i]);
    if (inner == nullptr || inner->op != Operator::Negative) return std::nullopt;
    return inner->operands[0];
  };
  switch (op) {
    case Operator::Add:
      if (is(0, 0)) return operands[1];
      if (is(1, 0)) return operands[0];
      if (const auto b = negated(1)) return sub(operands[0], *b);
      return std::nullopt;
    case Operator::Sub:
      if (is(1, 0)) return operands[0];
      if (is(0, 0)) return neg(operands[1]);
      if (const auto b = negated(1)) return add(operands[0], *b);
      return std::nullopt;
    case Operator::Mul:
      if (is(0, 0) || is(1, 0)) return number(t, 0);
      if (is(0, 1)) return operands[1];
      if (is(1, 1)) return operands[0];
      if (is(0, -1)) return neg(operands[1]);
      if (is(1, -1)) return neg(operands[0]);
      if (const auto a = negated(0)) return neg(mul(*a, operands[1]));
      if (const auto b = negated(1)) return neg(mul(operands[0], *b));
      return std::nullopt;
    case Operator::Div:
      if (is(1, 1)) return operands[0];
      if (is(0, 0)) return operands[0];
      return std::nullopt;
    case Operator::Negative:
      if (const auto* constant = as<FloatConstant>(operands[0])) return number(t, -constant->value);
      return negated(0);
    default: return std::nullopt;
  }
}

std::optional<ExprId> Builder::folded_index(Operator op, const std::vector<ExprId>& operands) {
  if (operands.size() == 2) {
    if (const auto result = decided(op, operands[0], operands[1])) return boolean(*result);
    if (op == Operator::FloorDiv || op == Operator::FloorMod)
      return folded_division(op, operands[0], operands[1]);
  }
  std::optional<Polynomial> result;
  if (op == Operator::Add) {
    result = autodiff::add(polynomial(operands[0]), polynomial(operands[1]));
  } else if (op == Operator::Sub) {
    result = autodiff::add(polynomial(operands[0]), polynomial(operands[1]), -1);
  } else if (op == Operator::Negative) {
    result = autodiff::add(Polynomial{}, polynomial(operands[0]), -1);
  } else if (op == Operator::Mul) {
    result = multiply(polynomial(operands[0]), polynomial(operands[1]));
  }
  if (!result) return std::nullopt;
  // Where the normal form is the operation itself, it stays as it is.
  if (result->as_atom() || result->as_constant()) return expression(*result);
  const ExprId plain = intern({DType::Int64, Operation{op, operands}});
  const auto [entry, fresh] = polynomials_.try_emplace(plain, *result);
  return expression(entry->second);
}

/// floordiv(c*q + r, c) is q + floordiv(r, c), floormod the same as of r; with 0 <= r < c they are
/// q and r.
std::optional<ExprId> Builder::folded_division(Operator op, ExprId a, ExprId b) {
  const Polynomial by = polynomial(b);
  const std::optional<int64_t> number = by.as_constant();
  if (number && *number <= 0) return std::nullopt;
  const std::optional<Quotient> parts = divide(polynomial(a), by);
  if (!parts) return std::nullopt;
  const std::optional<Polynomial> room = autodiff::add(by, parts->rest, -1);
  const std::optional<Polynomial> room_less_one =
      room ? autodiff::add(*room, Polynomial::constant(-1)) : std::nullopt;
  const bool fits = room_less_one && is_nonnegative(parts->rest) && is_nonnegative(*room_less_one);
  if (fits) return expression(op == Operator::FloorDiv ? parts->quotient : parts->rest);
  // A symbolic divisor may be 0, for which the law of floors does not hold.
  if (!number || parts->quotient.is_zero()) return std::nullopt;
  const ExprId rest = this->op(op, {expression(parts->rest), b});
  return op == Operator::FloorMod ? rest : add(expression(parts->quotient), rest);
}

std::optional<bool> Builder::decided(Operator op, ExprId a, ExprId b) {
  const auto at_least = [&](ExprId x, ExprId y, int64_t by) {
    const auto difference = autodiff::add(polynomial(x), polynomial(y), -1);
    if (!difference) return false;
    const auto less = autodiff::add(*difference, Polynomial::constant(-by));
    return less && is_nonnegative(*less);
  };
  switch (op) {
    case Operator::GreaterEqual: return decided(Operator::LessEqual, b, a);
    case Operator::Greater: return decided(Operator::Less, b, a);
    case Operator::LessEqual:
      if (at_least(b, a, 0)) return true;
      if (at_least(a, b, 1)) return false;
      return std::nullopt;
    case Operator::Less:
      if (at_least(b, a, 1)) return true;
      if (at_least(a, b, 0)) return false;
      return std::nullopt;
    case Operator::Equal:
    case Operator::NotEqual:
      if (at_least(a, b, 0) && at_least(b, a, 0)) return op == Operator::Equal;
      if (at_least(a, b, 1) || at_least(b, a, 1)) return op == Operator::NotEqual;
      return std::nullopt;
    default: return std::nullopt;
  }
}

}  // namespace kiln::autodiff
