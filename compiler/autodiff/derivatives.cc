// The derivative of each operator of the operator table, for each of its operands. Where a function
// has a corner it is a value between those of both sides: abs'(0) = 0, and of max(a, b) with a == b
// all goes to a, or to b where that is a constant. Steps (floor, round) are flat.
//
//   tanh   g*(1 - y*y), of the result y, so that nothing is computed twice
#include "compiler/autodiff/derivatives.h"

#include <numbers>

namespace kiln::autodiff {
namespace {

using namespace language;

class Derivative {
 public:
  Derivative(Builder& b, const Operation& operation, ExprId result, ExprId adjoint)
      : b_(b), op_(operation.op), x_(operation.operands), y_(result), g_(adjoint) {}

  std::optional<ExprId> of(size_t operand) {
    return x_.size() == 1 ? of_one() : of_several(operand);
  }

 private:
  ExprId number(double value) { return b_.number(b_.type(g_), value); }
  ExprId one_minus(ExprId a) { return b_.sub(number(1), a); }
  ExprId one_plus(ExprId a) { return b_.add(number(1), a); }
  ExprId square(ExprId a) { return b_.mul(a, a); }
  ExprId call(Operator op, ExprId a) { return b_.op(op, {a}); }
  ExprId scaled(double by) { return b_.mul(g_, number(by)); }
  ExprId where(Operator compare, ExprId a, ExprId b, ExprId yes, ExprId no) {
    return b_.op(Operator::Select, {b_.op(compare, {a, b}), yes, no});
  }

  std::optional<ExprId> of_one() {
    const ExprId x = x_[0];
    switch (op_) {
      case Operator::Negative: return b_.neg(g_);
      // As of any other rounding of a type.
      case Operator::Tf32: return g_;
      case Operator::Abs:
        return where(Operator::Greater, x, number(0), g_,
                     where(Operator::Less, x, number(0), b_.neg(g_), number(0)));
      case Operator::Exp: return b_.mul(g_, y_);
      case Operator::Exp2: return b_.mul(scaled(std::numbers::ln2), y_);
      case Operator::Exp10: return b_.mul(scaled(std::numbers::ln10), y_);
      case Operator::Expm1: return b_.mul(g_, one_plus(y_));
      case Operator::Log: return b_.div(g_, x);
      case Operator::Log2: return b_.div(scaled(std::numbers::log2e), x);
      case Operator::Log10: return b_.div(scaled(std::numbers::log10e), x);
      case Operator::Log1p: return b_.div(g_, one_plus(x));
      case Operator::Sqrt: return b_.div(scaled(0.5), y_);
      case Operator::Rsqrt: return b_.mul(scaled(-0.5), b_.mul(y_, square(y_)));
      case Operator::Cbrt: return b_.div(g_, b_.mul(number(3), square(y_)));
      default: return of_trigonometry(x);
    }
  }

  std::optional<ExprId> of_trigonometry(ExprId x) {
    switch (op_) {
      case Operator::Sin: return b_.mul(g_, call(Operator::Cos, x));
      case Operator::Cos: return b_.neg(b_.mul(g_, call(Operator::Sin, x)));
      case Operator::Tan: return b_.mul(g_, one_plus(square(y_)));
      case Operator::Asin: return b_.mul(g_, call(Operator::Rsqrt, one_minus(square(x))));
      case Operator::Acos: return b_.neg(b_.mul(g_, call(Operator::Rsqrt, one_minus(square(x)))));
      case Operator::Atan: return b_.div(g_, one_plus(square(x)));
      case Operator::Sinh: return b_.mul(g_, call(Operator::Cosh, x));
      case Operator::Cosh: return b_.mul(g_, call(Operator::Sinh, x));
      case Operator::Tanh: return b_.mul(g_, one_minus(square(y_)));
      case Operator::Asinh: return b_.mul(g_, call(Operator::Rsqrt, one_plus(square(x))));
      case Operator::Acosh: return b_.mul(g_, call(Operator::Rsqrt, b_.sub(square(x), number(1))));
      case Operator::Atanh: return b_.div(g_, one_minus(square(x)));
      case Operator::Erf:
        return b_.mul(scaled(2 * std::numbers::inv_sqrtpi), call(Operator::Exp, b_.neg(square(x))));
      case Operator::Sigmoid: return b_.mul(g_, b_.mul(y_, one_minus(y_)));
      default: return std::nullopt;
    }
  }

  std::optional<ExprId> of_several(size_t operand) {
    const bool is_first = operand == 0;
    const ExprId a = x_[0];
    const ExprId b = x_[1];
    switch (op_) {
      case Operator::Add: return g_;
      case Operator::Sub: return is_first ? g_ : b_.neg(g_);
      case Operator::Mul: return b_.mul(g_, is_first ? b : a);
      case Operator::Div: return is_first ? b_.div(g_, b) : b_.neg(b_.div(b_.mul(g_, y_), b));
      case Operator::Min: return of_extreme(Operator::Less, is_first);
      case Operator::Max: return of_extreme(Operator::Greater, is_first);
      case Operator::Select:
        return operand == 1 ? b_.op(Operator::Select, {a, g_, number(0)})
                            : b_.op(Operator::Select, {a, number(0), g_});
      case Operator::Pow: return is_first ? of_base() : of_exponent();
      case Operator::Atan2:
        return is_first ? b_.div(b_.mul(g_, b), b_.add(square(a), square(b)))
                        : b_.neg(b_.div(b_.mul(g_, a), b_.add(square(a), square(b))));
      case Operator::Hypot: return b_.div(b_.mul(g_, is_first ? a : b), y_);
      case Operator::Fma: return operand == 2 ? g_ : b_.mul(g_, is_first ? b : a);
      default: return of_digits(is_first);
    }
  }

  /// Operators that take numbers apart.
  std::optional<ExprId> of_digits(bool is_first) {
    const ExprId a = x_[0];
    const ExprId b = x_[1];
    const auto of_remainder = [&](Operator rounding) {
      return is_first ? g_ : b_.neg(b_.mul(g_, call(rounding, b_.div(a, b))));
    };
    switch (op_) {
      case Operator::FloorMod: return of_remainder(Operator::Floor);
      case Operator::Fmod: return of_remainder(Operator::Trunc);
      case Operator::Ldexp:
        if (!is_first) return std::nullopt;
        return b_.op(Operator::Ldexp, {g_, b});
      case Operator::NextAfter:
        if (!is_first) return std::nullopt;
        return g_;
      case Operator::CopySign:
        if (!is_first) return std::nullopt;
        return b_.mul(g_, b_.mul(sign(a), sign(b)));
      default: return std::nullopt;
    }
  }

  ExprId sign(ExprId x) { return b_.op(Operator::CopySign, {number(1), x}); }

  /// Of equal operands the first gets all, but nothing where the second is a constant: relu'(0) =
  /// 0. A result that is stored is above the constant where the first operand is, which then need
  /// not be kept for the gradient.
  std::optional<ExprId> of_extreme(Operator wins, bool is_first) {
    const bool is_constant = b_.as<FloatConstant>(x_[1]) != nullptr;
    if (is_first && is_constant && b_.as<Read>(y_) != nullptr) {
      return where(wins, y_, x_[1], g_, number(0));
    }
    const Operator beats = is_constant              ? wins
                           : wins == Operator::Less ? Operator::LessEqual
                                                    : Operator::GreaterEqual;
    return is_first ? where(beats, x_[0], x_[1], g_, number(0))
                    : where(beats, x_[0], x_[1], number(0), g_);
  }

  /// b * a^(b - 1); a^0 is flat everywhere.
  ExprId of_base() {
    const ExprId b = x_[1];
    if (b_.is_number(b, 2)) return b_.mul(scaled(2), x_[0]);
    if (const auto* constant = b_.as<FloatConstant>(b)) {
      if (constant->value == 0) return number(0);
      const double exponent = constant->value;
      return b_.mul(scaled(exponent), b_.op(Operator::Pow, {x_[0], number(exponent - 1)}));
    }
    const ExprId slope = b_.mul(b, b_.op(Operator::Pow, {x_[0], b_.sub(b, number(1))}));
    return where(Operator::Equal, b, number(0), number(0), b_.mul(g_, slope));
  }

  /// a^b * log(a); 0^b is flat where b is positive.
  ExprId of_exponent() {
    const ExprId a = x_[0];
    return where(Operator::Equal, a, number(0), number(0),
                 b_.mul(g_, b_.mul(y_, call(Operator::Log, a))));
  }

  Builder& b_;
  const Operator op_;
  const std::vector<ExprId> x_;
  const ExprId y_;
  const ExprId g_;
};

}  // namespace

std::optional<ExprId> operand_adjoint(Builder& builder, const Operation& operation, size_t operand,
                                      ExprId result, ExprId adjoint) {
  return Derivative(builder, operation, result, adjoint).of(operand);
}

}  // namespace kiln::autodiff
