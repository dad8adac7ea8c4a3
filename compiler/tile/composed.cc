// Functions that Tile IR does not have, with the polynomials that they have on a CPU
// (codegen/llvm_exponentials.cc).
#include "compiler/tile/composed.h"

#include <span>

#include "runtime/core/error.h"

namespace kiln::tile {
namespace {

using language::Operator;

class Composer {
 public:
  Composer(ProgramWriter& writer, ValueId x) : writer_(writer), x_(x) {}

  /// Near 0 an odd polynomial; else 1 - e^q(|x|) with q close to log(erfc). 1.2 ulp.
  ValueId error_function() {
    constexpr double kNear[] = {0x1.06eba8p-3, -0x1.812742p-2,  0x1.ce2df4p-4, -0x1.b80cb4p-6,
                                0x1.54b5e4p-8, -0x1.a99ef4p-11, 0x1.5ac32ap-14};
    constexpr double kFar[] = {0x1.7a37bep-13, -0x1.2129acp+0, -0x1.443ed4p-1, -0x1.bbc386p-4,
                               0x1.9c3344p-6,  -0x1.12556cp-8, 0x1.cace0ep-12, -0x1.6667cap-16};
    constexpr double kIsNear = 0.9375;
    constexpr double kIsOne = 4;  // from here on
    const ValueId size = magnitude();
    const ValueId near =
        apply(Operator::Fma, {polynomial(apply(Operator::Mul, {x_, x_}), kNear), x_, x_});
    const ValueId q = polynomial(apply(Operator::Min, {size, number(kIsOne)}), kFar);
    const ValueId far = apply(Operator::Sub, {number(1), apply(Operator::Exp, {q})});
    const ValueId turned = choose(less(x_, 0), apply(Operator::Negative, {far}), far);
    return choose(less(size, kIsNear), near, turned);
  }

  /// By the exponential of -|x|, which cannot overflow, so that small results stay exact too.
  ValueId sigmoid() {
    const ValueId e = apply(Operator::Exp, {apply(Operator::Negative, {magnitude()})});
    const ValueId above = choose(less(x_, 0), e, number(1));
    return apply(Operator::Div, {above, apply(Operator::Add, {number(1), e})});
  }

 private:
  ValueId apply(Operator function, std::vector<ValueId> operands) {
    return writer_.apply(function, std::move(operands), DType::Float32);
  }
  ValueId number(double number) {
    return writer_.constant(number, {DType::Float32, writer_.type_of(x_).shape});
  }
  ValueId less(ValueId a, double b) {
    return writer_.apply(Operator::Less, {a, number(b)}, DType::Bool);
  }
  ValueId choose(ValueId condition, ValueId a, ValueId b) {
    return apply(Operator::Select, {condition, a, b});
  }
  ValueId magnitude() { return apply(Operator::Max, {x_, apply(Operator::Negative, {x_})}); }
  /// The coefficient of the lowest power first.
  ValueId polynomial(ValueId of, std::span<const double> coefficients) {
    ValueId sum = number(coefficients.back());
    for (size_t i = coefficients.size() - 1; i-- > 0;)
      sum = apply(Operator::Fma, {sum, of, number(coefficients[i])});
    return sum;
  }

  ProgramWriter& writer_;
  const ValueId x_;
};

}  // namespace

ValueId compose(ProgramWriter& writer, Operator function, ValueId operand) {
  Composer composer(writer, operand);
  if (function == Operator::Erf) return composer.error_function();
  KILN_CHECK(function == Operator::Sigmoid);
  return composer.sigmoid();
}

}  // namespace kiln::tile
