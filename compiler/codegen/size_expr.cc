// Translates index expressions into the small postfix language that the runtime evaluates before a
// call. It has few operators, so that others are made of them: `a <= b` is not(b < a), and a choice
// is condition*x + not(condition)*y.
#include "compiler/codegen/size_expr.h"

#include "compiler/ir/print.h"
#include "runtime/core/error.h"

namespace kiln::codegen {
namespace {

using ir::Expr;
using ir::Operator;
using Op = SizeExpr::Op;

class ToSizeExpr {
 public:
  explicit ToSizeExpr(std::span<const ir::VarRef> scalars) : scalars_(scalars) {}

  SizeExpr operator()(const Expr& expr) const {
    if (const auto* constant = ir::as<ir::IntImm>(expr)) return SizeExpr::constant(constant->value);
    if (const auto* var = ir::as<ir::Var>(expr)) return of(*var);
    if (const auto* binary = ir::as<ir::Binary>(expr)) return of(*binary);
    if (const auto* call = ir::as<ir::Call>(expr)) return of(*call, expr);
    const auto* cast = ir::as<ir::Cast>(expr);
    if (cast == nullptr || is_float(cast->value->type.element)) refuse(expr);
    return (*this)(cast->value);
  }

 private:
  SizeExpr of(const ir::Var& var) const {
    for (size_t i = 0; i < scalars_.size(); ++i) {
      if (scalars_[i].get() == &var) return SizeExpr::scalar(static_cast<int64_t>(i));
    }
    fail(ErrorKind::Internal, "SIZE_EXPR", "internal error: {} is no size of the kernel", var.name);
  }

  SizeExpr of(const ir::Binary& node) const {
    const SizeExpr a = (*this)(node.a);
    const SizeExpr b = (*this)(node.b);
    switch (node.op) {
      case Operator::Add: return SizeExpr::binary(Op::Add, a, b);
      case Operator::Sub: return SizeExpr::binary(Op::Sub, a, b);
      case Operator::Mul: return SizeExpr::binary(Op::Mul, a, b);
      case Operator::FloorDiv: return SizeExpr::binary(Op::FloorDiv, a, b);
      case Operator::FloorMod: return SizeExpr::binary(Op::FloorMod, a, b);
      case Operator::Min: return SizeExpr::binary(Op::Min, a, b);
      case Operator::Max: return SizeExpr::binary(Op::Max, a, b);
      case Operator::Equal: return SizeExpr::binary(Op::Equal, a, b);
      case Operator::NotEqual: return negate(SizeExpr::binary(Op::Equal, a, b));
      case Operator::Less: return SizeExpr::binary(Op::Less, a, b);
      case Operator::Greater: return SizeExpr::binary(Op::Less, b, a);
      case Operator::LessEqual: return negate(SizeExpr::binary(Op::Less, b, a));
      case Operator::GreaterEqual: return negate(SizeExpr::binary(Op::Less, a, b));
      case Operator::And: return SizeExpr::binary(Op::And, a, b);
      case Operator::Or: return SizeExpr::binary(Op::Or, a, b);
      default: refuse(Expr(&node));
    }
  }

  SizeExpr of(const ir::Call& call, const Expr& expr) const {
    switch (call.op) {
      case Operator::Not: return negate((*this)(call.args[0]));
      case Operator::Negative:
        return SizeExpr::binary(Op::Sub, SizeExpr::constant(0), (*this)(call.args[0]));
      case Operator::Select:
      case Operator::IfThenElse: {
        // A condition is 1 or 0, so the choice is a sum of products.
        const SizeExpr condition = (*this)(call.args[0]);
        return SizeExpr::binary(
            Op::Add, SizeExpr::binary(Op::Mul, condition, (*this)(call.args[1])),
            SizeExpr::binary(Op::Mul, negate(condition), (*this)(call.args[2])));
      }
      default: refuse(expr);
    }
  }

  static SizeExpr negate(SizeExpr value) {
    value.nodes.push_back({Op::Not});
    return value;
  }

  [[noreturn]] static void refuse(const Expr& expr) {
    fail(ErrorKind::Unsupported, "SIZE_EXPR",
         "a size of the kernel is {}, which cannot be computed before the call", expr);
  }

  std::span<const ir::VarRef> scalars_;
};

}  // namespace

SizeExpr to_size_expr(const Expr& expr, std::span<const ir::VarRef> scalars) {
  return ToSizeExpr(scalars)(expr);
}

std::optional<int64_t> constant_of(const SizeExpr& expr) {
  if (expr.nodes.size() != 1 || expr.nodes[0].op != Op::Constant) return std::nullopt;
  return expr.nodes[0].operand;
}

}  // namespace kiln::codegen
