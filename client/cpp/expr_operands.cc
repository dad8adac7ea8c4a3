// What expressions are made of, which is all that a walk through them or a comparison asks.
#include "client/cpp/expr_operands.h"

#include <algorithm>

namespace kiln {
inline namespace client {
namespace detail {
namespace {

bool is_one(const IntegerValue& a, const IntegerValue& b) { return a.value == b.value; }
bool is_one(const FloatingValue& a, const FloatingValue& b) { return a.value == b.value; }
bool is_one(const VariableValue& a, const VariableValue& b) { return a.name == b.name; }
bool is_one(const AxisValue& a, const AxisValue& b) { return a.axis == b.axis; }
bool is_one(const OperationValue& a, const OperationValue& b) { return a.spelling == b.spelling; }
bool is_one(const CastValue&, const CastValue&) { return true; }
bool is_one(const ReadValue& a, const ReadValue& b) { return is_same(a.tensor, b.tensor); }
bool is_one(const ParameterValue& a, const ParameterValue& b) { return a.position == b.position; }
// Each has axes of its own.
bool is_one(const ReductionValue&, const ReductionValue&) { return false; }

/// But for their parts.
bool is_one(const ExprNode& a, const ExprNode& b) {
  if (a.type != b.type || a.value.index() != b.value.index()) return false;
  return std::visit(
      [&]<typename Value>(const Value& value) { return is_one(value, std::get<Value>(b.value)); },
      a.value);
}

}  // namespace

std::vector<Expr> operands_of(const Expr& expr) {
  const auto& value = expr.node()->value;
  if (const auto* operation = std::get_if<OperationValue>(&value)) return operation->operands;
  if (const auto* cast = std::get_if<CastValue>(&value)) return {cast->operand};
  if (const auto* read = std::get_if<ReadValue>(&value)) return read->indices;
  const auto* reduction = std::get_if<ReductionValue>(&value);
  if (reduction == nullptr) return {};
  std::vector<Expr> parts;
  for (const ReduceAxis& axis : reduction->axes) {
    parts.push_back(*axis.node()->minimum);
    parts.push_back(*axis.node()->extent);
  }
  const std::vector<Expr> others = reduction->parts();
  parts.insert(parts.end(), others.begin(), others.end());
  return parts;
}

bool are_alike(const Expr& a, const Expr& b) {
  if (a.node() == b.node()) return true;
  if (!is_one(*a.node(), *b.node())) return false;
  const std::vector<Expr> ours = operands_of(a);
  const std::vector<Expr> theirs = operands_of(b);
  return std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end(), are_alike);
}

}  // namespace detail
}  // namespace client
}  // namespace kiln
