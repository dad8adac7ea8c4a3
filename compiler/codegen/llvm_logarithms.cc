// Logarithms: x = 2^k m, log x = k ln 2 + log m, with a polynomial in r = m - 1, or for float64 in
// r / (r + 2), whose series is shorter; what a product or a sum of the large terms loses in
// rounding is added with the small ones. The inverse hyperbolic functions are log(1 + t) of a t
// that is exact near 0.
#include <numbers>

#include <llvm/IR/Intrinsics.h>

#include "compiler/codegen/llvm_elementary.h"
#include "compiler/codegen/llvm_float_builder.h"
#include "compiler/codegen/llvm_values.h"

namespace kiln::codegen {

using language::Operator;
using llvm::Value;

namespace {

struct MantissaExponent {
  Value* mantissa;  // less 1; in -0.3 .. 0.42
  Value* exponent;
};

/// x = 2^k m with m in sqrt(1/2) .. sqrt(2); numbers below the normal range are scaled up first.
MantissaExponent split(FloatBuilder& f, Value* x) {
  const int64_t fraction = fraction_bits(x);
  const int64_t bias = exponent_bias(x);
  const int64_t root_of_half = is_double(x) ? 0x3fe6a09e667f3bcd : 0x3f3504f3;
  Value* const is_small = f.b.CreateFCmpOLT(x, f.constant(x, 0x1p-126, 0x1p-1022));
  Value* const larger = f.b.CreateFMul(x, f.constant(x, 0x1p23, 0x1p52));
  Value* const raw = f.bits(f.b.CreateSelect(is_small, larger, x));
  llvm::Type* const whole = raw->getType();
  Value* const moved = f.b.CreateAdd(raw, integer(whole, (bias << fraction) - root_of_half));
  Value* const places = f.b.CreateAnd(moved, integer(whole, (int64_t{1} << fraction) - 1));
  Value* const m = f.from_bits(f.b.CreateAdd(places, integer(whole, root_of_half)), x);
  Value* const k = f.b.CreateSub(
      f.b.CreateLShr(moved, integer(whole, fraction)),
      f.b.CreateSelect(is_small, integer(whole, bias + fraction), integer(whole, bias)));
  // From 32 bits every CPU converts vectors.
  Value* const exponent = f.b.CreateTrunc(k, like(x->getType(), f.b.getInt32Ty()));
  return {f.b.CreateFSub(m, f.constant(x, 1)), f.b.CreateSIToFP(exponent, x->getType())};
}

/// log(1 + r) - r + r^2 / 2 for r as split() gives it.
Value* rest_of_logarithm(FloatBuilder& f, Value* r, Value* square) {
  if (!is_double(r)) {
    Value* const p = f.polynomial(
        r, {0x1.555548p-2, -0x1.000006p-2, 0x1.99a4b6p-3, -0x1.555c4ep-3, 0x1.233768p-3,
            -0x1.fc2202p-4, 0x1.e6f074p-4, -0x1.de3c38p-4, 0x1.1457c0p-4});
    return f.b.CreateFMul(f.b.CreateFMul(r, square), p);
  }
  // log(1 + r) = 2 atanh s = 2s + s q with s = r / (r + 2), where 2s = r - s r.
  Value* const s = f.b.CreateFDiv(r, f.b.CreateFAdd(r, f.constant(r, 2)));
  Value* const z = f.b.CreateFMul(s, s);
  Value* const p = f.polynomial(
      z, {0x1.5555555555592p-1, 0x1.999999997fe6bp-2, 0x1.24924941e8581p-2, 0x1.c71c520fb14d0p-3,
          0x1.74663dc4536f5p-3, 0x1.39a1d45650514p-3, 0x1.2f0485bfbbf21p-3});
  return f.b.CreateFMul(s, f.fma(z, p, f.b.CreateFMul(f.constant(r, 0.5), square)));
}

Value* logarithm(FloatBuilder& f, Value* x) {
  const MantissaExponent parts = split(f, x);
  Value* const r = parts.mantissa;
  Value* const square = f.b.CreateFMul(r, r);
  Value* const rest = rest_of_logarithm(f, r, square);
  // From the smallest to the largest.
  Value* sum = f.fma(parts.exponent, f.constant(x, kLn2Low, kWideLn2Low), rest);
  sum = f.b.CreateFAdd(r, f.fma(f.constant(x, -0.5), square, sum));
  return f.fma(parts.exponent, f.constant(x, kLn2High, kWideLn2High), sum);
}

/// In two parts, that of e and that of 2; the first part of that of 2 has few bits.
struct Base {
  double of_e;
  double of_e_rest_narrow, of_e_rest_wide;
  double of_2_narrow, of_2_wide;
  double of_2_rest_narrow, of_2_rest_wide;
};

/// The logarithm to a base. 1.6 ulp.
Value* logarithm_to(FloatBuilder& f, Value* x, const Base& base) {
  const MantissaExponent parts = split(f, x);
  Value* const r = parts.mantissa;
  Value* const square = f.b.CreateFMul(r, r);
  Value* const rest = f.fma(f.constant(x, -0.5), square, rest_of_logarithm(f, r, square));
  // The product with the first term is exact in two parts.
  Value* const factor = f.constant(x, base.of_e);
  Value* const first = f.b.CreateFMul(r, factor);
  Value* const error = f.fma(r, factor, f.b.CreateFNeg(first));
  Value* sum = f.fma(r, f.constant(x, base.of_e_rest_narrow, base.of_e_rest_wide), error);
  sum = f.fma(rest, factor, sum);
  if (base.of_2_rest_wide != 0) {
    sum = f.fma(parts.exponent, f.constant(x, base.of_2_rest_narrow, base.of_2_rest_wide), sum);
  }
  sum = f.b.CreateFAdd(first, sum);
  return f.fma(parts.exponent, f.constant(x, base.of_2_narrow, base.of_2_wide), sum);
}

/// The result where the argument of a logarithm is not positive and finite.
Value* outside_of_logarithm(FloatBuilder& f, Value* x, Value* result) {
  llvm::Type* const type = x->getType();
  Value* const infinity = llvm::ConstantFP::getInfinity(type);
  Value* const zero = f.constant(x, 0);
  result = f.b.CreateSelect(f.b.CreateFCmpOEQ(x, zero),
                            llvm::ConstantFP::getInfinity(type, /*Negative=*/true), result);
  result = f.b.CreateSelect(f.b.CreateFCmpOLT(x, zero), llvm::ConstantFP::getNaN(type), result);
  return f.b.CreateSelect(f.b.CreateFCmpOLT(x, infinity), result, x);
}

/// 0.81 ulp.
Value* natural_logarithm(FloatBuilder& f, Value* x) {
  return outside_of_logarithm(f, x, logarithm(f, x));
}

Value* logarithm2(FloatBuilder& f, Value* x) {
  constexpr double kOfE = std::numbers::log2e;
  constexpr Base kTwo{kOfE, kOfE - static_cast<float>(kOfE), 0x1.777d0ffda0d24p-56, 1, 1, 0, 0};
  return outside_of_logarithm(f, x, logarithm_to(f, x, kTwo));
}

Value* logarithm10(FloatBuilder& f, Value* x) {
  constexpr double kOfE = std::numbers::log10e;
  constexpr Base kTen{kOfE,
                      kOfE - static_cast<float>(kOfE),
                      0x1.95355baaafad3p-57,
                      0.301025390625,
                      0x1.34413509f8p-2,
                      4.6050389811952137e-6,
                      -0x1.80433b83b532ap-44};
  return outside_of_logarithm(f, x, logarithm_to(f, x, kTen));
}

/// log(u) with u = 1 + x, and what was lost in rounding u. 1.3 ulp.
Value* logarithm1p(FloatBuilder& f, Value* x) {
  Value* const one = f.constant(x, 1);
  Value* const u = f.b.CreateFAdd(one, x);
  // The larger of the two is subtracted first, which is exact.
  Value* const from_x = f.b.CreateFSub(x, f.b.CreateFSub(u, one));
  Value* const from_one = f.b.CreateFSub(one, f.b.CreateFSub(u, x));
  Value* const lost = f.b.CreateSelect(f.b.CreateFCmpOGT(x, one), from_one, from_x);
  Value* const sum = f.b.CreateFAdd(logarithm(f, u), f.b.CreateFDiv(lost, u));
  Value* const result = outside_of_logarithm(f, u, sum);
  // Where u is 1 the result is x, with its sign.
  return f.b.CreateSelect(f.b.CreateFCmpOEQ(u, one), x, result);
}

/// log1p(t), but past 2^30 or 2^500, where a square may overflow and is all there is under a root,
/// log 2a.
Value* arc_of_root(FloatBuilder& f, Value* a, Value* t) {
  Value* const is_large = f.b.CreateFCmpOGT(a, f.constant(a, 0x1p30, 0x1p500));
  Value* const of = logarithm1p(f, f.b.CreateSelect(is_large, a, t));
  Value* const doubled = f.b.CreateFAdd(of, f.constant(a, std::numbers::ln2));
  return f.b.CreateSelect(is_large, doubled, of);
}

/// log1p(a + a^2 / (1 + sqrt(a^2 + 1))) with a = |x|. 1.9 ulp.
Value* inverse_sine(FloatBuilder& f, Value* x) {
  Value* const one = f.constant(x, 1);
  Value* const a = f.magnitude(x);
  Value* const square = f.b.CreateFMul(a, a);
  Value* const root = f.b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, f.b.CreateFAdd(square, one));
  Value* const t = f.b.CreateFAdd(a, f.b.CreateFDiv(square, f.b.CreateFAdd(one, root)));
  return f.with_sign_of(arc_of_root(f, a, t), x);
}

/// log1p(t + sqrt(t^2 + 2t)) with t = x - 1. 1.8 ulp.
Value* inverse_cosine(FloatBuilder& f, Value* x) {
  Value* const t = f.b.CreateFSub(x, f.constant(x, 1));
  Value* const root =
      f.b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, f.fma(t, t, f.b.CreateFAdd(t, t)));
  Value* const result = arc_of_root(f, x, f.b.CreateFAdd(t, root));
  Value* const nan = llvm::ConstantFP::getNaN(x->getType());
  return f.b.CreateSelect(f.b.CreateFCmpOLT(t, f.constant(x, 0)), nan, result);
}

/// log1p(2a / (1 - a)) / 2 with a = |x|. 2.1 ulp.
Value* inverse_tangent(FloatBuilder& f, Value* x) {
  Value* const a = f.magnitude(x);
  Value* const t = f.b.CreateFDiv(f.b.CreateFAdd(a, a), f.b.CreateFSub(f.constant(x, 1), a));
  Value* const half = f.b.CreateFMul(f.constant(x, 0.5), logarithm1p(f, t));
  return f.with_sign_of(half, x);
}

}  // namespace

std::span<const ElementaryFunction> logarithms() {
  static constexpr ElementaryFunction kFunctions[] = {
      {Operator::Log, of_one<natural_logarithm>}, {Operator::Log2, of_one<logarithm2>},
      {Operator::Log10, of_one<logarithm10>},     {Operator::Log1p, of_one<logarithm1p>},
      {Operator::Asinh, of_one<inverse_sine>},    {Operator::Acosh, of_one<inverse_cosine>},
      {Operator::Atanh, of_one<inverse_tangent>},
  };
  return kFunctions;
}

}  // namespace kiln::codegen
