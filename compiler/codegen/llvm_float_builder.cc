// Arithmetic of floats as LLVM has it, for functions that are written once for one lane and for
// many. A float32 is rounded to a whole number by adding 1.5 * 2^23, whose last place is 1: the sum
// less that number is the float, its low bits are the integer. A float64 likewise by 1.5 * 2^52.
#include "compiler/codegen/llvm_float_builder.h"

#include <llvm/IR/Intrinsics.h>

#include "compiler/codegen/llvm_values.h"

namespace kiln::codegen {

using llvm::Value;

bool is_double(Value* x) { return x->getType()->getScalarType()->isDoubleTy(); }

int64_t fraction_bits(Value* x) { return is_double(x) ? 52 : 23; }

int64_t exponent_bias(Value* x) { return is_double(x) ? 1023 : 127; }

bool FloatBuilder::scales(Value* x) const { return arithmetic.scales && fills_registers(x); }

Value* FloatBuilder::constant(Value* like, double value) { return number(like->getType(), value); }

Value* FloatBuilder::constant(Value* like, double narrow, double wide) {
  return constant(like, is_double(like) ? wide : narrow);
}

Value* FloatBuilder::fma(Value* x, Value* y, Value* z) {
  return b.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, z});
}

Value* FloatBuilder::polynomial(Value* x, Coefficients c) {
  const double* at = c.end() - 1;
  Value* sum = constant(x, *at);
  while (at != c.begin())
    sum = fma(sum, x, constant(x, *--at));
  return sum;
}

Value* FloatBuilder::polynomial(Value* x, Coefficients narrow, Coefficients wide) {
  return polynomial(x, is_double(x) ? wide : narrow);
}

Value* FloatBuilder::at_least(Value* x, Value* limit) {
  return b.CreateSelect(b.CreateFCmpOLT(x, limit), limit, x);
}

Value* FloatBuilder::at_most(Value* x, Value* limit) {
  return b.CreateSelect(b.CreateFCmpOGT(x, limit), limit, x);
}

Value* FloatBuilder::magnitude(Value* x) {
  return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
}

Value* FloatBuilder::with_sign_of(Value* x, Value* sign) {
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, x, sign);
}

Value* FloatBuilder::bits(Value* x) {
  const unsigned width = x->getType()->getScalarSizeInBits();
  return b.CreateBitCast(x, like(x->getType(), b.getIntNTy(width)));
}

Value* FloatBuilder::from_bits(Value* x, Value* like) {
  return b.CreateBitCast(x, like->getType());
}

FloatBuilder::Whole FloatBuilder::rounded(Value* x, double factor) {
  Value* const anchor = constant(x, 0x1.8p23, 0x1.8p52);
  Value* const anchored = fma(x, constant(x, factor), anchor);
  return {b.CreateFSub(anchored, anchor), b.CreateSub(bits(anchored), bits(anchor))};
}

Value* FloatBuilder::power_of_two(Value* exponent, Value* like) {
  llvm::Type* const whole = exponent->getType();
  Value* const biased = b.CreateAdd(exponent, integer(whole, exponent_bias(like)));
  return from_bits(b.CreateShl(biased, integer(whole, fraction_bits(like))), like);
}

Value* FloatBuilder::less_ln2(Value* x, Value* multiple) {
  Value* const rest = fma(multiple, constant(x, -kLn2High, -kWideLn2High), x);
  return fma(multiple, constant(x, -kLn2Low, -kWideLn2Low), rest);
}

}  // namespace kiln::codegen
