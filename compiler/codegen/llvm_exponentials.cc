// e^x and what is made of it, for float32: x = n ln 2 + r, e^x = 2^n p(r), with p a polynomial
// and n put into the exponent; sinh and cosh are sums, tanh, erf and sigmoid fractions of
// exponentials, or odd polynomials near 0.
#include <numbers>

#include "compiler/codegen/llvm_elementary.h"
#include "compiler/codegen/llvm_float_builder.h"
#include "compiler/codegen/llvm_values.h"

namespace kiln::codegen {

using language::Operator;
using llvm::Value;

namespace {

/// e^r for |r| < 0.35
Value* exponential_near_0(FloatBuilder& f, Value* r) {
  return f.polynomial(r, {1.0, 1.0, 4.999999345e-1, 1.666652069e-1, 4.166838736e-2, 8.368709832e-3,
                          1.381461309e-3});
}

/// e^r 2^n. Without an instruction for it, the scale is applied in two steps, so that results below
/// the normal range round once more but are never lost.
Value* scaled_exponential(FloatBuilder& f, Value* r, const FloatBuilder::Whole& whole) {
  Value* const p = exponential_near_0(f, r);
  if (f.scales(r)) return scaled(f.b, p, whole.value);
  Value* const n = whole.integer;
  Value* const first = f.b.CreateAShr(n, integer(n->getType(), 1));
  Value* const second = f.b.CreateSub(n, first);
  return f.b.CreateFMul(f.b.CreateFMul(p, f.power_of_two(first, r)), f.power_of_two(second, r));
}

/// e^x = 2^n e^r with r in half a ln 2 around 0. 0.83 ulp.
Value* exponential(FloatBuilder& f, Value* x) {
  // Past these the result is infinity and 0; they keep n in range, and let nan through.
  Value* const low =
      f.b.CreateSelect(f.b.CreateFCmpOLT(x, f.constant(x, -104)), f.constant(x, -104), x);
  // An instruction that scales needs no upper end: however wrong r may be, the result is infinite.
  Value* const t = f.scales(x) ? low
                               : f.b.CreateSelect(f.b.CreateFCmpOGT(low, f.constant(x, 89)),
                                                  f.constant(x, 89), low);
  const FloatBuilder::Whole n = f.rounded(t, std::numbers::log2e);
  Value* const r =
      f.fma(n.value, f.constant(x, -kLn2Low), f.fma(n.value, f.constant(x, -kLn2High), t));
  return scaled_exponential(f, r, n);
}

/// 0.8 ulp.
Value* exponential2(FloatBuilder& f, Value* x) {
  Value* const low =
      f.b.CreateSelect(f.b.CreateFCmpOLT(x, f.constant(x, -151)), f.constant(x, -151), x);
  Value* const t =
      f.b.CreateSelect(f.b.CreateFCmpOGT(low, f.constant(x, 129)), f.constant(x, 129), low);
  const FloatBuilder::Whole n = f.rounded(t, 1);
  Value* const r = f.b.CreateFMul(f.b.CreateFSub(t, n.value), f.constant(x, std::numbers::ln2));
  return scaled_exponential(f, r, n);
}

/// 2^n (p + 1) - 1 with p = e^r - 1, which is the result itself where n is 0. 1.44 ulp.
Value* exponential_less_1(FloatBuilder& f, Value* x) {
  // From -17.4 down the result is -1, from 88.8 up infinity; nan goes through.
  Value* const low =
      f.b.CreateSelect(f.b.CreateFCmpOLT(x, f.constant(x, -20)), f.constant(x, -20), x);
  Value* const t =
      f.b.CreateSelect(f.b.CreateFCmpOGT(low, f.constant(x, 89)), f.constant(x, 89), low);
  const FloatBuilder::Whole n = f.rounded(t, std::numbers::log2e);
  Value* const r =
      f.fma(n.value, f.constant(x, -kLn2Low), f.fma(n.value, f.constant(x, -kLn2High), t));
  Value* const q =
      f.polynomial(r, {0x1.0000002606b47p-1, 0x1.555554ef512a8p-3, 0x1.5554b0ec4a34dp-5,
                       0x1.111189977c1ccp-7, 0x1.6d723e0cc4d97p-10, 0x1.a032c4b8486a6p-13});
  Value* const p = f.fma(f.b.CreateFMul(r, r), q, r);
  // By half of 2^n, since 2^128 is no number while its product with p + 1 may be one.
  Value* const before = f.b.CreateSub(n.integer, integer(n.integer->getType(), 1));
  Value* const half = f.power_of_two(before, x);
  Value* const sum = f.fma(half, p, f.b.CreateFSub(half, f.constant(x, 0.5)));
  Value* const is_near = f.b.CreateFCmpOEQ(n.value, f.constant(x, 0));
  Value* const result = f.b.CreateSelect(is_near, p, f.b.CreateFAdd(sum, sum));
  return f.with_sign_of(result, x);
}

/// e^|x| / 2, which is finite wherever sinh and cosh are.
Value* half_exponential(FloatBuilder& f, Value* magnitude) {
  // From 89.5 on the result is infinity; nan goes through.
  Value* const limit = f.constant(magnitude, 90);
  Value* const t = f.b.CreateSelect(f.b.CreateFCmpOGT(magnitude, limit), limit, magnitude);
  const FloatBuilder::Whole n = f.rounded(t, std::numbers::log2e);
  Value* const r =
      f.fma(n.value, f.constant(t, -kLn2Low), f.fma(n.value, f.constant(t, -kLn2High), t));
  // Half of 2^n in two steps, since 2^128 is no number.
  Value* const before = f.b.CreateSub(n.integer, integer(n.integer->getType(), 2));
  Value* const p = f.b.CreateFMul(exponential_near_0(f, r), f.power_of_two(before, t));
  return f.b.CreateFAdd(p, p);
}

/// Near 0 an odd polynomial of degree 9; else h - 1 / 4h with h = e^|x| / 2. 1.6 ulp.
Value* hyperbolic_sine(FloatBuilder& f, Value* x) {
  Value* const a = f.magnitude(x);
  Value* const square = f.b.CreateFMul(x, x);
  Value* const p =
      f.polynomial(square, {0x1.555556p-3, 0x1.111134p-7, 0x1.9ffe92p-13, 0x1.7a15b6p-19});
  Value* const near = f.fma(f.b.CreateFMul(p, square), a, a);
  Value* const half = half_exponential(f, a);
  Value* const far = f.b.CreateFSub(half, f.b.CreateFDiv(f.constant(x, 0.25), half));
  Value* const is_near = f.b.CreateFCmpOLT(a, f.constant(x, 1));
  return f.with_sign_of(f.b.CreateSelect(is_near, near, far), x);
}

/// h + 1 / 4h. 1.3 ulp.
Value* hyperbolic_cosine(FloatBuilder& f, Value* x) {
  Value* const half = half_exponential(f, f.magnitude(x));
  return f.b.CreateFAdd(half, f.b.CreateFDiv(f.constant(x, 0.25), half));
}

/// Near 0 an odd polynomial of degree 11; else 1 - 2 / (e^2|x| + 1). 1.3 ulp.
Value* hyperbolic_tangent(FloatBuilder& f, Value* x) {
  Value* const a = f.magnitude(x);
  Value* const square = f.b.CreateFMul(x, x);
  Value* const p = f.polynomial(
      square, {-0x1.555534p-2, 0x1.110768p-3, -0x1.b84448p-5, 0x1.5256d4p-6, -0x1.76ac0ap-8});
  Value* const near = f.fma(f.b.CreateFMul(p, square), a, a);
  // From 9.1 on the result is 1; up to there e^2|x| is in the normal range, one scale is enough.
  Value* const limit = f.constant(x, 9.1);
  Value* const t = f.b.CreateSelect(f.b.CreateFCmpOGT(a, limit), limit, a);
  const FloatBuilder::Whole n = f.rounded(t, 2 * std::numbers::log2e);
  Value* const r = f.fma(n.value, f.constant(x, -kLn2Low),
                         f.fma(n.value, f.constant(x, -kLn2High), f.b.CreateFAdd(t, t)));
  Value* const e = f.b.CreateFMul(exponential_near_0(f, r), f.power_of_two(n.integer, x));
  Value* const quotient = f.b.CreateFDiv(f.constant(x, 2), f.b.CreateFAdd(e, f.constant(x, 1)));
  Value* const far = f.b.CreateFSub(f.constant(x, 1), quotient);
  Value* const is_near = f.b.CreateFCmpOLT(a, f.constant(x, 0.625));
  return f.with_sign_of(f.b.CreateSelect(is_near, near, far), x);
}

/// Near 0 an odd polynomial of degree 15; else 1 - e^q(|x|) with q close to log(erfc). 1.2 ulp.
Value* error_function(FloatBuilder& f, Value* x) {
  Value* const a = f.magnitude(x);
  Value* const p = f.polynomial(f.b.CreateFMul(x, x),
                                {0x1.06eba8p-3, -0x1.812742p-2, 0x1.ce2df4p-4, -0x1.b80cb4p-6,
                                 0x1.54b5e4p-8, -0x1.a99ef4p-11, 0x1.5ac32ap-14});
  Value* const near = f.fma(p, a, a);
  // From 4 on the result is 1.
  Value* const t = f.b.CreateSelect(f.b.CreateFCmpOGT(a, f.constant(x, 4)), f.constant(x, 4), a);
  Value* const q =
      f.polynomial(t, {0x1.7a37bep-13, -0x1.2129acp+0, -0x1.443ed4p-1, -0x1.bbc386p-4,
                       0x1.9c3344p-6, -0x1.12556cp-8, 0x1.cace0ep-12, -0x1.6667cap-16});
  Value* const far = f.b.CreateFSub(f.constant(x, 1), exponential(f, q));
  Value* const is_near = f.b.CreateFCmpOLT(a, f.constant(x, 0.9375));
  return f.with_sign_of(f.b.CreateSelect(is_near, near, far), x);
}

/// By the exponential of -|x|, which cannot overflow, so that small results stay exact too. 2.3
/// ulp.
Value* sigmoid(FloatBuilder& f, Value* x) {
  Value* const one = f.constant(x, 1);
  Value* const e = exponential(f, f.b.CreateFNeg(f.magnitude(x)));
  Value* const above = f.b.CreateSelect(f.b.CreateFCmpOLT(x, f.constant(x, 0)), e, one);
  return f.b.CreateFDiv(above, f.b.CreateFAdd(one, e));
}

}  // namespace

std::span<const ElementaryFunction> exponentials() {
  static constexpr ElementaryFunction kFunctions[] = {
      {Operator::Exp, of_one<exponential>},          {Operator::Exp2, of_one<exponential2>},
      {Operator::Expm1, of_one<exponential_less_1>}, {Operator::Sinh, of_one<hyperbolic_sine>},
      {Operator::Cosh, of_one<hyperbolic_cosine>},   {Operator::Tanh, of_one<hyperbolic_tangent>},
      {Operator::Erf, of_one<error_function>},       {Operator::Sigmoid, of_one<sigmoid>},
  };
  return kFunctions;
}

}  // namespace kiln::codegen
