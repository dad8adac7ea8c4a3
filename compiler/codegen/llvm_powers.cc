// Powers and roots of float32.
#include "compiler/codegen/llvm_elementary.h"
#include "compiler/codegen/llvm_float_builder.h"
#include "compiler/codegen/llvm_values.h"

namespace kiln::codegen {

using language::Operator;
using llvm::Value;

namespace {

/// x^(-1/3), first by its bits, within 4 %, then by two steps of the series of (1 - c)^(-1/3) with
/// c = 1 - x y^3; and x times its square, to which what that lacks is added, as exact as products
/// in two parts. 0.501 ulp.
Value* cube_root(FloatBuilder& f, Value* x) {
  Value* const a = f.magnitude(x);
  // In the lowest part of the range what a product leaves would be lost.
  Value* const is_small = f.b.CreateFCmpOLT(a, f.constant(x, 0x1p-60));
  Value* const s = f.b.CreateSelect(is_small, f.b.CreateFMul(a, f.constant(x, 0x1p66)), a);
  constexpr double kBitsOfOne = 0x54a232a3;  // and a third, less what makes the error even
  llvm::Type* const whole = f.bits(s)->getType();
  Value* const third = f.fma(f.b.CreateSIToFP(f.bits(s), x->getType()), f.constant(x, -1.0 / 3),
                             f.constant(x, kBitsOfOne));
  Value* y = f.from_bits(f.b.CreateFPToSI(third, whole), x);
  for (int step = 0; step < 2; ++step) {
    Value* const root = f.b.CreateFMul(f.b.CreateFMul(s, y), y);
    Value* const c = f.fma(f.b.CreateFNeg(root), y, f.constant(x, 1));
    Value* const series = f.polynomial(c, {1.0 / 3, 2.0 / 9, 14.0 / 81});
    y = f.fma(f.b.CreateFMul(series, c), y, y);
  }
  Value* const root = f.b.CreateFMul(f.b.CreateFMul(s, y), y);
  Value* const square = f.b.CreateFMul(root, root);
  Value* const lost = f.fma(root, root, f.b.CreateFNeg(square));
  Value* rest = f.fma(f.b.CreateFNeg(square), root, s);
  rest = f.fma(f.b.CreateFNeg(lost), root, rest);
  Value* const per_rest = f.b.CreateFMul(y, y);
  Value* const exact = f.fma(f.b.CreateFMul(rest, f.constant(x, 1.0 / 3)), per_rest, root);
  Value* const result =
      f.b.CreateSelect(is_small, f.b.CreateFMul(exact, f.constant(x, 0x1p-22)), exact);
  // 0, infinity and nan are their own.
  Value* const infinity = llvm::ConstantFP::getInfinity(x->getType());
  Value* const has_root =
      f.b.CreateAnd(f.b.CreateFCmpOGT(a, f.constant(x, 0)), f.b.CreateFCmpOLT(a, infinity));
  return f.b.CreateSelect(has_root, f.with_sign_of(result, x), x);
}

/// log2 a in float64: log2 m = s q(s^2) with s = (m - 1) / (m + 1), m in sqrt(1/2) .. sqrt(2).
Value* wide_log2(FloatBuilder& f, Value* a) {
  llvm::Type* const whole = f.bits(a)->getType();
  constexpr int64_t kRootOfHalf = 0x3fe6a09e667f3bcd;
  Value* const k =
      f.b.CreateAShr(f.b.CreateSub(f.bits(a), integer(whole, kRootOfHalf)), integer(whole, 52));
  Value* const m = f.from_bits(f.b.CreateSub(f.bits(a), f.b.CreateShl(k, integer(whole, 52))), a);
  Value* const one = f.constant(a, 1);
  Value* const s = f.b.CreateFDiv(f.b.CreateFSub(m, one), f.b.CreateFAdd(m, one));
  Value* const q = f.polynomial(f.b.CreateFMul(s, s),
                                {0x1.71547652b8250p+1, 0x1.ec709dc53e4c3p-1, 0x1.2776c290e6fdbp-1,
                                 0x1.a61a30c654036p-2, 0x1.4794ff877e586p-2, 0x1.21b60607d4c2bp-2});
  // The exponent fits 32 bits, from where every CPU converts vectors.
  Value* const exponent = f.b.CreateTrunc(k, like(a->getType(), f.b.getInt32Ty()));
  Value* logarithm = f.fma(s, q, f.b.CreateSIToFP(exponent, a->getType()));
  logarithm =
      f.b.CreateSelect(f.b.CreateFCmpOEQ(a, f.constant(a, 0)),
                       llvm::ConstantFP::getInfinity(a->getType(), /*Negative=*/true), logarithm);
  Value* const infinity = llvm::ConstantFP::getInfinity(a->getType());
  return f.b.CreateSelect(f.b.CreateFCmpOEQ(a, infinity), infinity, logarithm);
}

/// 2^product in float64, to the bits that a float32 has.
Value* wide_exp2(FloatBuilder& f, Value* product) {
  Value* const low = f.b.CreateSelect(f.b.CreateFCmpOLT(product, f.constant(product, -200)),
                                      f.constant(product, -200), product);
  Value* const t = f.b.CreateSelect(f.b.CreateFCmpOGT(low, f.constant(product, 200)),
                                    f.constant(product, 200), low);
  Value* const anchor = f.constant(product, 6755399441055744);  // 1.5 * 2^52
  Value* const anchored = f.b.CreateFAdd(t, anchor);
  Value* const r = f.b.CreateFSub(t, f.b.CreateFSub(anchored, anchor));
  Value* const p = f.polynomial(
      r, {0x1.00000002627d8p+0, 0x1.62e430c82c5a2p-1, 0x1.ebfbdadb13982p-3, 0x1.c6aed45e81603p-5,
          0x1.3b2dbc54cfd94p-7, 0x1.5f45986bcba3ep-10, 0x1.41d31fbf9865bp-13});
  Value* const scaled =
      f.b.CreateAdd(f.bits(p), f.b.CreateShl(f.bits(anchored), integer(f.bits(p)->getType(), 52)));
  return f.from_bits(scaled, product);
}

/// C's rules about the signs of x^y, where result is |x|^y, and about the cases where the logarithm
/// is not a number but x^y is.
Value* with_rules_of_c(FloatBuilder& f, Value* x, Value* y, Value* result) {
  llvm::Type* const type = x->getType();
  Value* const infinity = llvm::ConstantFP::getInfinity(type);
  Value* const zero = f.constant(x, 0);
  const auto is_whole = [&](Value* value) {
    return f.b.CreateFCmpOEQ(f.b.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, value), value);
  };
  Value* const y_is_whole = is_whole(y);
  Value* const y_is_odd =
      f.b.CreateAnd(y_is_whole, f.b.CreateNot(is_whole(f.b.CreateFMul(y, f.constant(y, 0.5)))));
  Value* const is_negative = f.b.CreateICmpSLT(f.bits(x), integer(f.bits(x)->getType(), 0));
  result = f.b.CreateSelect(f.b.CreateAnd(is_negative, y_is_odd), f.b.CreateFNeg(result), result);
  Value* const has_no_root = f.b.CreateAnd(
      f.b.CreateFCmpOLT(x, zero),
      f.b.CreateAnd(f.b.CreateNot(y_is_whole), f.b.CreateFCmpOLT(f.magnitude(x), infinity)));
  Value* const is_nan = f.b.CreateOr(has_no_root, f.b.CreateFCmpUNO(x, y));
  result = f.b.CreateSelect(is_nan, llvm::ConstantFP::getNaN(type), result);
  Value* const y_is_infinite = f.b.CreateFCmpOEQ(f.magnitude(y), infinity);
  Value* const unit = f.constant(x, 1);
  Value* const is_one =
      f.b.CreateOr(f.b.CreateOr(f.b.CreateFCmpOEQ(y, zero), f.b.CreateFCmpOEQ(x, unit)),
                   f.b.CreateAnd(f.b.CreateFCmpOEQ(x, f.constant(x, -1)), y_is_infinite));
  return f.b.CreateSelect(is_one, unit, result);
}

/// 2^(y log2 |x|) in float64, whose 53 bits leave room for the factor y.
Value* power(FloatBuilder& f, Value* x, Value* y) {
  llvm::Type* const wide = like(x->getType(), f.b.getDoubleTy());
  Value* const logarithm = wide_log2(f, f.b.CreateFPExt(f.magnitude(x), wide));
  Value* const product = f.b.CreateFMul(logarithm, f.b.CreateFPExt(y, wide));
  Value* const result = f.b.CreateFPTrunc(wide_exp2(f, product), x->getType());
  return with_rules_of_c(f, x, y, result);
}

}  // namespace

std::span<const ElementaryFunction> powers() {
  static constexpr ElementaryFunction kFunctions[] = {
      {Operator::Cbrt, of_one<cube_root>, ElementaryFunction::Of::Float32},
      {Operator::Pow, of_two<power>, ElementaryFunction::Of::Float32},
  };
  return kFunctions;
}

}  // namespace kiln::codegen
