// Index expressions as numbers. A prediction asks how far apart two iterations read, not whether
// that can be proved, so one difference of two numbers takes the place of an analysis:
//
//   A[i*n + j], n = 1024   ->   i moves by 1024 elements, j by 1
//
// A vector of indices stands for its first lane.
#include "compiler/predict/numbers.h"

#include <algorithm>

namespace kiln::predict {

using namespace ir;

std::optional<int64_t> Numbers::operator()(const Expr& expr) const {
  if (const auto* constant = as<IntImm>(expr)) return constant->value;
  if (const auto* var = as<Var>(expr)) {
    const auto found = values_.find(VarRef(var));
    return found == values_.end() ? 0 : found->second;
  }
  if (const auto* binary = as<Binary>(expr)) return of_binary(*binary);
  if (const auto* call = as<Call>(expr)) return of_call(*call);
  if (const auto* cast = as<Cast>(expr)) return (*this)(cast->value);
  if (const auto* ramp = as<Ramp>(expr)) return (*this)(ramp->base);
  if (const auto* broadcast = as<Broadcast>(expr)) return (*this)(broadcast->value);
  return std::nullopt;
}

std::optional<int64_t> Numbers::of_binary(const Binary& binary) const {
  const std::optional<int64_t> left = (*this)(binary.a);
  const std::optional<int64_t> right = (*this)(binary.b);
  if (!left || !right) return std::nullopt;
  const int64_t a = *left;
  const int64_t b = *right;
  switch (binary.op) {
    case Operator::Add: return a + b;
    case Operator::Sub: return a - b;
    case Operator::Mul: return a * b;
    case Operator::Min: return std::min(a, b);
    case Operator::Max: return std::max(a, b);
    case Operator::Less: return a < b ? 1 : 0;
    case Operator::LessEqual: return a <= b ? 1 : 0;
    case Operator::Greater: return a > b ? 1 : 0;
    case Operator::GreaterEqual: return a >= b ? 1 : 0;
    case Operator::Equal: return a == b ? 1 : 0;
    case Operator::NotEqual: return a != b ? 1 : 0;
    case Operator::And: return a != 0 && b != 0 ? 1 : 0;
    case Operator::Or: return a != 0 || b != 0 ? 1 : 0;
    default: break;
  }
  if (b == 0) return std::nullopt;
  const int64_t quotient = a / b;
  const int64_t rest = a % b;
  const bool is_below = rest != 0 && (rest < 0) != (b < 0);
  switch (binary.op) {
    case Operator::FloorDiv: return is_below ? quotient - 1 : quotient;
    case Operator::FloorMod: return is_below ? rest + b : rest;
    case Operator::TruncDiv: return quotient;
    case Operator::TruncMod: return rest;
    default: return std::nullopt;
  }
}

std::optional<int64_t> Numbers::of_call(const Call& call) const {
  const bool chooses = call.op == Operator::Select || call.op == Operator::IfThenElse;
  if (chooses) {
    const std::optional<int64_t> condition = (*this)(call.args[0]);
    return condition ? (*this)(call.args[*condition != 0 ? 1 : 2]) : std::nullopt;
  }
  if (call.op != Operator::Not) return std::nullopt;
  const std::optional<int64_t> value = (*this)(call.args[0]);
  return value ? std::optional<int64_t>(*value == 0 ? 1 : 0) : std::nullopt;
}

int64_t Numbers::stride(const Expr& expr, const VarRef& var) {
  const int64_t at_zero = (*this)(expr).value_or(0);
  set(var, 1);
  const int64_t at_one = (*this)(expr).value_or(0);
  set(var, 0);
  return at_one - at_zero;
}

}  // namespace kiln::predict
