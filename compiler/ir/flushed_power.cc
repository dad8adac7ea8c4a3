// Powers of two without subnormal ones, which take a GPU two multiplications and a comparison more.
// They are written as a choice that every target has; code generation finds it again.
#include "compiler/ir/flushed_power.h"

#include <cmath>
#include <limits>

#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"

namespace kiln::ir {
namespace {

// The exponent of the smallest number that is not subnormal: C counts from 0.5.
constexpr double kLeast = std::numeric_limits<float>::min_exponent - 1;

bool is_number(const Expr& expr, double number) {
  const auto* constant = as<FloatImm>(expr);
  return constant != nullptr && constant->value == number &&
         std::signbit(constant->value) == std::signbit(number);
}

}  // namespace

Expr flushed_power(const Expr& exponent) {
  const Type type = exponent->type;
  KILN_CHECK(type.element == DType::Float32);
  return operation(Operator::Select, {less(exponent, constant(type, kLeast)), constant(type, 0),
                                      operation(Operator::Exp2, {exponent})});
}

Expr find_flushed_power(const Call& call) {
  if (call.op != Operator::Select || call.type != Type{DType::Float32, 1}) return nullptr;
  const auto* is_less = as<Binary>(call.args[0]);
  const auto* power = as<Call>(call.args[2]);
  const bool is_found = is_less != nullptr && is_less->op == Operator::Less &&
                        is_number(is_less->b, kLeast) && is_number(call.args[1], 0) &&
                        power != nullptr && power->op == Operator::Exp2 &&
                        equal_trees(is_less->a, power->args[0]);
  return is_found ? power->args[0] : nullptr;
}

}  // namespace kiln::ir
