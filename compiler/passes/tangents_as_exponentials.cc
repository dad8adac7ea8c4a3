// Computes a hyperbolic tangent that 1 is added to by one exponential, as gelu has it:
//
//   Y[i] = 0.5 * X[i] * (1.0 + tanh(z))
//     ->
//   Y[i] = 0.5 * X[i] * (2.0 / (exp(-2.0 * z) + 1.0))
//
// and 1.0 - tanh(z) with exp(2.0 * z). A tangent alone is a polynomial near 0 and that fraction
// elsewhere, both of which vectors compute. The result is within 2.5 ulp of the exact one, where
// the sum loses digits: of z = -5 it keeps 11 of 24 bits. An exponential that is infinite gives 0,
// as the sum does from -9.1 down. Other bits than the definition's, so not where `strict` asks for
// these.
#include "compiler/ir/build.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/pass_context.h"

namespace kiln::passes {
namespace {

using namespace ir;

bool is_one(const Expr& expr) {
  const auto* number = as<FloatImm>(expr);
  return number != nullptr && number->value == 1;
}

const Call* as_tangent(const Expr& expr) {
  const auto* call = as<Call>(expr);
  return call != nullptr && call->op == Operator::Tanh ? call : nullptr;
}

/// A multiple by 2 or -2, which is exact; so a factor before it takes it.
Expr times(double factor, const Expr& value) {
  const auto* product = as<Binary>(value);
  const bool is_product = product != nullptr && product->op == Operator::Mul;
  const auto* before = is_product ? as<FloatImm>(product->a) : nullptr;
  if (before != nullptr) return FloatImm::make(value->type, factor * before->value) * product->b;
  return FloatImm::make(value->type, factor) * value;
}

class TangentsAsExponentials : public Mutator {
  using Mutator::visit;
  Expr visit(const Binary& node) override {
    const bool is_sum = node.op == Operator::Add;
    // A float of 16 bits rounds after each step.
    const bool is_wide = is_float(node.type.element) && size_of(node.type.element) > 2;
    const bool may_be = is_wide && (is_sum || node.op == Operator::Sub);
    const Call* of_b = may_be && is_one(node.a) ? as_tangent(node.b) : nullptr;
    const Call* tangent = of_b == nullptr && is_sum && is_one(node.b) ? as_tangent(node.a) : of_b;
    if (tangent == nullptr) return Mutator::visit(node);
    const Expr z = (*this)(tangent->args[0]);
    const auto number = [&](double value) { return FloatImm::make(node.type, value); };
    const Expr power = Call::make(Operator::Exp, {times(is_sum ? -2 : 2, z)});
    return Binary::make(Operator::Div, number(2), power + number(1));
  }
};

}  // namespace

Kernel tangents_as_exponentials(Kernel kernel, const PassContext& context) {
  if (!context.options.strict) kernel.body = TangentsAsExponentials()(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
