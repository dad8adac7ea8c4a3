// Powers and roots of float32.
#include "compiler/codegen/llvm_elementary.h"
#include "compiler/codegen/llvm_float_builder.h"
#include "compiler/codegen/llvm_values.h"

namespace kiln::codegen {

using language::Operator;
using llvm::Value;

namespace {

/// 2^(y log2 |x|) in float64, whose 53 bits leave room for the factor y; then C's rules about signs
/// and the cases where the product is not a number but the result is.
Value* power(FloatBuilder& f, Value* x, Value* y) {
  llvm::Type* const narrow = x->getType();
  llvm::Type* const wide = like(narrow, f.b.getDoubleTy());
  Value* const infinity = llvm::ConstantFP::getInfinity(wide);
  Value* const a = f.b.CreateFPExt(f.magnitude(x), wide);

  // log2 m = s q(s^2) with s = (m - 1) / (m + 1), m in sqrt(1/2) .. sqrt(2)
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
  Value* const exponent = f.b.CreateTrunc(k, like(narrow, f.b.getInt32Ty()));
  Value* logarithm = f.fma(s, q, f.b.CreateSIToFP(exponent, wide));
  logarithm = f.b.CreateSelect(f.b.CreateFCmpOEQ(a, f.constant(a, 0)),
                               llvm::ConstantFP::getInfinity(wide, /*Negative=*/true), logarithm);
  logarithm = f.b.CreateSelect(f.b.CreateFCmpOEQ(a, infinity), infinity, logarithm);

  Value* const product = f.b.CreateFMul(logarithm, f.b.CreateFPExt(y, wide));
  Value* const low = f.b.CreateSelect(f.b.CreateFCmpOLT(product, f.constant(a, -200)),
                                      f.constant(a, -200), product);
  Value* const t =
      f.b.CreateSelect(f.b.CreateFCmpOGT(low, f.constant(a, 200)), f.constant(a, 200), low);
  Value* const anchor = f.constant(a, 6755399441055744);  // 1.5 * 2^52
  Value* const anchored = f.b.CreateFAdd(t, anchor);
  Value* const r = f.b.CreateFSub(t, f.b.CreateFSub(anchored, anchor));
  Value* const p = f.polynomial(
      r, {0x1.00000002627d8p+0, 0x1.62e430c82c5a2p-1, 0x1.ebfbdadb13982p-3, 0x1.c6aed45e81603p-5,
          0x1.3b2dbc54cfd94p-7, 0x1.5f45986bcba3ep-10, 0x1.41d31fbf9865bp-13});
  Value* const scaled =
      f.b.CreateAdd(f.bits(p), f.b.CreateShl(f.bits(anchored), integer(whole, 52)));
  Value* result = f.b.CreateFPTrunc(f.from_bits(scaled, a), narrow);

  Value* const zero = f.constant(x, 0);
  const auto is_whole = [&](Value* value) {
    return f.b.CreateFCmpOEQ(f.b.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, value), value);
  };
  Value* const y_is_whole = is_whole(y);
  Value* const y_is_odd =
      f.b.CreateAnd(y_is_whole, f.b.CreateNot(is_whole(f.b.CreateFMul(y, f.constant(y, 0.5)))));
  Value* const is_negative = f.b.CreateICmpSLT(f.bits(x), integer(f.bits(x)->getType(), 0));
  result = f.b.CreateSelect(f.b.CreateAnd(is_negative, y_is_odd), f.b.CreateFNeg(result), result);
  Value* const has_no_root =
      f.b.CreateAnd(f.b.CreateFCmpOLT(x, zero),
                    f.b.CreateAnd(f.b.CreateNot(y_is_whole), f.b.CreateFCmpOLT(a, infinity)));
  Value* const is_nan = f.b.CreateOr(has_no_root, f.b.CreateFCmpUNO(x, y));
  result = f.b.CreateSelect(is_nan, llvm::ConstantFP::getNaN(narrow), result);
  Value* const y_is_infinite =
      f.b.CreateFCmpOEQ(f.magnitude(y), llvm::ConstantFP::getInfinity(narrow));
  Value* const unit = f.constant(x, 1);
  Value* const is_one =
      f.b.CreateOr(f.b.CreateOr(f.b.CreateFCmpOEQ(y, zero), f.b.CreateFCmpOEQ(x, unit)),
                   f.b.CreateAnd(f.b.CreateFCmpOEQ(x, f.constant(x, -1)), y_is_infinite));
  return f.b.CreateSelect(is_one, unit, result);
}

}  // namespace

std::span<const ElementaryFunction> powers() {
  static constexpr ElementaryFunction kFunctions[] = {
      {Operator::Pow, of_two<power>},
  };
  return kFunctions;
}

}  // namespace kiln::codegen
