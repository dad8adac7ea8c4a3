// e^x and what is made of it: x = n ln 2 + r, e^x = 2^n p(r), with p a polynomial
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
  return f.polynomial(
      r, {1.0, 1.0, 4.999999345e-1, 1.666652069e-1, 4.166838736e-2, 8.368709832e-3, 1.381461309e-3},
      {1.0, 1.0, 0x1.000000000000ap-1, 0x1.55555555554fap-3, 0x1.555555555087cp-5,
       0x1.1111111127beap-7, 0x1.6c16c1842a18fp-10, 0x1.a01a012a559b1p-13, 0x1.a0199a0c5affdp-16,
       0x1.71df255761396p-19, 0x1.28ad72d3fa16fp-22, 0x1.ad7f6655530e7p-26});
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

/// Of magnitudes for which e^x is a normal number: 2^n is added in the bits of e^r.
Value* exponential_of_small(FloatBuilder& f, Value* x) {
  const FloatBuilder::Whole n = f.rounded(x, std::numbers::log2e);
  Value* const p = f.bits(exponential_near_0(f, f.less_ln2(x, n.value)));
  Value* const scale = f.b.CreateShl(n.integer, integer(p->getType(), fraction_bits(x)));
  return f.from_bits(f.b.CreateAdd(p, scale), x);
}

Value* exponential_of_any(FloatBuilder& f, Value* x) {
  // Past these the result is infinity and 0; they keep n in range, and let nan through.
  Value* const low = f.at_least(x, f.constant(x, -104, -746));
  // An instruction that scales needs no upper end: however wrong r may be, the result is infinite.
  // That takes a polynomial of an even degree, which is positive everywhere.
  const bool has_end = !f.scales(x) || is_double(x);
  Value* const t = has_end ? f.at_most(low, f.constant(x, 89, 710)) : low;
  const FloatBuilder::Whole n = f.rounded(t, std::numbers::log2e);
  Value* const r = f.less_ln2(t, n.value);
  return scaled_exponential(f, r, n);
}

/// e^x = 2^n e^r with r in half a ln 2 around 0. 0.83 ulp.
Value* exponential(FloatBuilder& f, Value* x) {
  if (f.scales(x) || !f.arithmetic.fuses || !fills_registers(x)) return exponential_of_any(f, x);
  return chosen(
      f.b, are_at_most(f.b, x, is_double(x) ? 707 : 86), [&] { return exponential_of_small(f, x); },
      [&] { return exponential_of_any(f, x); });
}

/// 0.8 ulp.
Value* exponential2(FloatBuilder& f, Value* x) {
  Value* const low = f.at_least(x, f.constant(x, -151, -1076));
  Value* const t = f.at_most(low, f.constant(x, 129, 1025));
  const FloatBuilder::Whole n = f.rounded(t, 1);
  Value* const r = f.b.CreateFMul(f.b.CreateFSub(t, n.value), f.constant(x, std::numbers::ln2));
  return scaled_exponential(f, r, n);
}

/// 2^n (p + 1) - 1 with p = e^r - 1, which is the result itself where n is 0. 1.44 ulp.
Value* exponential_less_1(FloatBuilder& f, Value* x) {
  // From -17.4 or -37.5 down the result is -1, from 88.8 or 709.8 up infinity; nan goes through.
  Value* const low = f.at_least(x, f.constant(x, -20, -40));
  Value* const t = f.at_most(low, f.constant(x, 89, 710));
  const FloatBuilder::Whole n = f.rounded(t, std::numbers::log2e);
  Value* const r = f.less_ln2(t, n.value);
  Value* const q = f.polynomial(
      r,
      {0x1.0000002606b47p-1, 0x1.555554ef512a8p-3, 0x1.5554b0ec4a34dp-5, 0x1.111189977c1ccp-7,
       0x1.6d723e0cc4d97p-10, 0x1.a032c4b8486a6p-13},
      {0x1.0000000000000p-1, 0x1.5555555555559p-3, 0x1.555555555553fp-5, 0x1.111111110f6dap-7,
       0x1.6c16c16c1f081p-10, 0x1.a01a01afd3e3fp-13, 0x1.a01a017bc432dp-16, 0x1.71ddf87eb6af6p-19,
       0x1.27e53630b4399p-22, 0x1.af5e7508fdc32p-26, 0x1.1ee88117d12f2p-29});
  Value* const p = f.fma(f.b.CreateFMul(r, r), q, r);
  // By half of 2^n, since the largest is no number while its product with p + 1 may be one.
  Value* const before = f.b.CreateSub(n.integer, integer(n.integer->getType(), 1));
  Value* const half = f.power_of_two(before, x);
  Value* const sum = f.fma(half, p, f.b.CreateFSub(half, f.constant(x, 0.5)));
  Value* const is_near = f.b.CreateFCmpOEQ(n.value, f.constant(x, 0));
  Value* const result = f.b.CreateSelect(is_near, p, f.b.CreateFAdd(sum, sum));
  return f.with_sign_of(result, x);
}

/// e^|x| / 2, which is finite wherever sinh and cosh are.
Value* half_exponential(FloatBuilder& f, Value* magnitude) {
  // From 89.5 or 710.5 on the result is infinity; nan goes through.
  Value* const t = f.at_most(magnitude, f.constant(magnitude, 90, 711));
  const FloatBuilder::Whole n = f.rounded(t, std::numbers::log2e);
  Value* const r = f.less_ln2(t, n.value);
  // Half of 2^n in two steps, since of the largest it is no number.
  Value* const before = f.b.CreateSub(n.integer, integer(n.integer->getType(), 2));
  Value* const p = f.b.CreateFMul(exponential_near_0(f, r), f.power_of_two(before, t));
  return f.b.CreateFAdd(p, p);
}

/// Near 0 an odd polynomial of degree 9 or 17; else h - 1 / 4h with h = e^|x| / 2. 1.6 ulp.
Value* hyperbolic_sine(FloatBuilder& f, Value* x) {
  Value* const a = f.magnitude(x);
  Value* const square = f.b.CreateFMul(x, x);
  Value* const p = f.polynomial(
      square, {0x1.555556p-3, 0x1.111134p-7, 0x1.9ffe92p-13, 0x1.7a15b6p-19},
      {0x1.5555555555556p-3, 0x1.11111111110a6p-7, 0x1.a01a01a02899fp-13, 0x1.71de3a465b069p-19,
       0x1.ae64671b2a8f5p-26, 0x1.611a561707ffcp-33, 0x1.b4c75c96d331bp-41});
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

/// Near 0 an odd polynomial of degree 11 or 25; else 1 - 2 / (e^2|x| + 1). 1.3 ulp.
Value* hyperbolic_tangent(FloatBuilder& f, Value* x) {
  Value* const a = f.magnitude(x);
  Value* const square = f.b.CreateFMul(x, x);
  Value* const p = f.polynomial(
      square, {-0x1.555534p-2, 0x1.110768p-3, -0x1.b84448p-5, 0x1.5256d4p-6, -0x1.76ac0ap-8},
      {-0x1.5555555555552p-2, 0x1.1111111110c04p-3, -0x1.ba1ba1b9ce67dp-5, 0x1.664f487037a6ap-6,
       -0x1.226e32c1371c8p-7, 0x1.d6d3584f0eb9ep-9, -0x1.7d9c1d62980bcp-10, 0x1.350ae1cbd09f2p-11,
       -0x1.f10cb60256bbbp-13, 0x1.80061defefb7ap-14, -0x1.fa753187dd385p-16,
       0x1.9580e9c0b0fbep-18});
  Value* const near = f.fma(f.b.CreateFMul(p, square), a, a);
  // From 9.1 or 19.1 on the result is 1; up to there e^2|x| is in the normal range, one scale is
  // enough.
  Value* const t = f.at_most(a, f.constant(x, 9.1, 19.1));
  const FloatBuilder::Whole n = f.rounded(t, 2 * std::numbers::log2e);
  Value* const r = f.less_ln2(f.b.CreateFAdd(t, t), n.value);
  Value* const e = f.b.CreateFMul(exponential_near_0(f, r), f.power_of_two(n.integer, x));
  Value* const quotient = f.b.CreateFDiv(f.constant(x, 2), f.b.CreateFAdd(e, f.constant(x, 1)));
  Value* const far = f.b.CreateFSub(f.constant(x, 1), quotient);
  Value* const is_near = f.b.CreateFCmpOLT(a, f.constant(x, 0.625));
  return f.with_sign_of(f.b.CreateSelect(is_near, near, far), x);
}

/// Near 0 an odd polynomial of degree 15 or 25; else 1 - e^q(|x|) with q close to log(erfc). 1.2
/// ulp.
Value* error_function(FloatBuilder& f, Value* x) {
  Value* const a = f.magnitude(x);
  Value* const p =
      f.polynomial(f.b.CreateFMul(x, x),
                   {0x1.06eba8p-3, -0x1.812742p-2, 0x1.ce2df4p-4, -0x1.b80cb4p-6, 0x1.54b5e4p-8,
                    -0x1.a99ef4p-11, 0x1.5ac32ap-14},
                   {0x1.06eba8214db68p-3, -0x1.812746b0379dcp-2, 0x1.ce2f21a042307p-4,
                    -0x1.b82ce3125a294p-6, 0x1.565bcd067e78bp-8, -0x1.c02db267ec182p-11,
                    0x1.f9a2f2b2fdd68p-14, -0x1.f4cdf052823e5p-17, 0x1.b9a6997f6371cp-20,
                    -0x1.5d07b31240c01p-23, 0x1.de98cd69d83c6p-27, -0x1.c3daeaf41851dp-31});
  Value* const near = f.fma(p, a, a);
  // From 4 or 5.95 on the result is 1.
  Value* const t = f.at_most(a, f.constant(x, 4, 5.95));
  Value* const q = f.polynomial(
      t,
      {0x1.7a37bep-13, -0x1.2129acp+0, -0x1.443ed4p-1, -0x1.bbc386p-4, 0x1.9c3344p-6,
       -0x1.12556cp-8, 0x1.cace0ep-12, -0x1.6667cap-16},
      {-0x1.bfa204e6f4f42p-24, -0x1.20dd62af80554p+0, -0x1.45f3b82a61a19p-1, -0x1.a4e4909dd36c1p-4,
       0x1.38e4c1dbdcd2cp-6, 0x1.088ffdac0ca62p-12, -0x1.c78622d78f707p-10, 0x1.41ed9fbcd3fb4p-11,
       -0x1.b7e064eb120e9p-16, -0x1.51bd49ea0854dp-14, 0x1.9ef01f64b4834p-15,
       -0x1.2ed7bab652962p-16, 0x1.3eb01456e573dp-18, -0x1.f91b733dceca6p-21, 0x1.2d95beb990649p-23,
       -0x1.0880a5d674f77p-26, 0x1.426d1caf1d483p-30, -0x1.e88e48f6fe1dap-35,
       0x1.5a95b49eaad35p-40});
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
