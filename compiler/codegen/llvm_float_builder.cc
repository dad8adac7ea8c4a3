// Arithmetic of float32 as LLVM has it, for functions that are written once for one lane and for
// many. A float is rounded to a whole number by adding 1.5 * 2^23, whose last place is 1: the sum
// less that number is the float, its low bits are the integer.
#include "compiler/codegen/llvm_float_builder.h"

#include <llvm/IR/Intrinsics.h>

#include "compiler/codegen/llvm_values.h"

namespace kiln::codegen {

using llvm::Value;

namespace {

constexpr double kAnchor = 12582912;  // 1.5 * 2^23: adding it rounds a float to a whole number

}  // namespace

bool FloatBuilder::scales(Value* x) const { return arithmetic.scales && fills_registers(x); }

Value* FloatBuilder::constant(Value* like, double value) { return number(like->getType(), value); }

Value* FloatBuilder::fma(Value* x, Value* y, Value* z) {
  return b.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, z});
}

Value* FloatBuilder::polynomial(Value* x, std::initializer_list<double> c) {
  const double* at = c.end() - 1;
  Value* sum = constant(x, *at);
  while (at != c.begin())
    sum = fma(sum, x, constant(x, *--at));
  return sum;
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
  Value* const anchor = constant(x, kAnchor);
  Value* const anchored = fma(x, constant(x, factor), anchor);
  return {b.CreateFSub(anchored, anchor), b.CreateSub(bits(anchored), bits(anchor))};
}

Value* FloatBuilder::power_of_two(Value* exponent, Value* like) {
  llvm::Type* const whole = exponent->getType();
  Value* const biased = b.CreateAdd(exponent, integer(whole, 127));
  return from_bits(b.CreateShl(biased, integer(whole, 23)), like);
}

}  // namespace kiln::codegen
