// Index expressions as numbers. A prediction asks how far apart two iterations read, not whether
// that can be proved, so one difference of two numbers takes the place of an analysis:
//
//   A[i*n + j], n = 1024   ->   i moves by 1024 elements, j by 1
//
// A vector of indices stands for its first lane.
#include "compiler/predict/numbers.h"

#include "compiler/language/evaluate/scalar.h"

namespace kiln::predict {

using namespace ir;

std::optional<int64_t> Numbers::operator()(const Expr& expr) const {
  if (const auto* constant = as<IntImm>(expr)) return constant->value;
  if (const auto* var = as<Var>(expr)) {
    const auto found = values_.find(VarRef(var));
    return found == values_.end() ? 0 : found->second;
  }
  if (const auto* binary = as<Binary>(expr)) return of_operator(binary->op, {binary->a, binary->b});
  if (const auto* call = as<Call>(expr)) return of_operator(call->op, call->args);
  if (const auto* cast = as<Cast>(expr)) return (*this)(cast->value);
  if (const auto* ramp = as<Ramp>(expr)) return (*this)(ramp->base);
  if (const auto* broadcast = as<Broadcast>(expr)) return (*this)(broadcast->value);
  return std::nullopt;
}

std::optional<int64_t> Numbers::of_operator(Operator op, const std::vector<Expr>& operands) const {
  const auto scalar = [&](const Expr& expr) -> std::optional<language::Scalar> {
    const std::optional<int64_t> value = (*this)(expr);
    if (!value || is_float(expr->type.element)) return std::nullopt;
    return language::Scalar::of_int(expr->type.element, *value);
  };
  if (op == Operator::Select || op == Operator::IfThenElse) {
    const std::optional<int64_t> condition = (*this)(operands[0]);
    return condition ? (*this)(operands[*condition != 0 ? 1 : 2]) : std::nullopt;
  }
  std::vector<language::Scalar> values;
  for (const Expr& operand : operands) {
    const std::optional<language::Scalar> value = scalar(operand);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return language::apply_operator(op, values).integer;
}

int64_t Numbers::stride(const Expr& expr, const VarRef& var) {
  const int64_t at_zero = (*this)(expr).value_or(0);
  set(var, 1);
  const int64_t at_one = (*this)(expr).value_or(0);
  set(var, 0);
  return at_one - at_zero;
}

}  // namespace kiln::predict
