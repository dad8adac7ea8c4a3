// Arithmetic that is faster than LLVM's own expansion and rounds the same: 2^n scaling by AVX-512's
// vscalef, and division of many lanes by one number through its reciprocal, after Markstein,
// "Computation of elementary functions on the IBM RISC System/6000 processor" (1990).
#include "compiler/codegen/llvm_arithmetic.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "compiler/codegen/llvm_values.h"
#include "runtime/core/error.h"

namespace kiln::codegen {

using llvm::Value;

namespace {

constexpr int kRegisterLanes = 16;    // float32 in the widest register, of 64 bytes
constexpr unsigned kFewestLanes = 4;  // and in the narrowest, of 16

int lanes_of(Value* x) {
  return static_cast<int>(llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements());
}

Value* joined(llvm::IRBuilderBase& b, Value* low, Value* high) {
  std::vector<int> places;
  for (int i = 0; i < 2 * lanes_of(low); ++i)
    places.push_back(i);
  return b.CreateShuffleVector(low, high, places);
}

/// vscalefps of one register. Its last operand of 512 bits is the rounding mode, of which 4 means
/// the current one; the masks take all lanes.
Value* scaled_register(llvm::IRBuilderBase& b, Value* x, Value* n) {
  const int lanes = lanes_of(x);
  Value* const zero = llvm::Constant::getNullValue(x->getType());
  if (lanes == kRegisterLanes) {
    constexpr uint32_t kCurrentRounding = 4;
    return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_512, {},
                             {x, n, zero, b.getInt16(0xffff), b.getInt32(kCurrentRounding)});
  }
  const auto id = lanes == 8 ? llvm::Intrinsic::x86_avx512_mask_scalef_ps_256
                             : llvm::Intrinsic::x86_avx512_mask_scalef_ps_128;
  return b.CreateIntrinsic(id, {}, {x, n, zero, b.getInt8(0xff)});
}

/// Whether the magnitude of a float lies in 2^low .. 2^high; 0, nan and infinity do not.
Value* has_exponent(llvm::IRBuilderBase& b, Value* x, int low, int high) {
  constexpr int kBias = 127;
  constexpr int kFraction = 23;
  llvm::Type* const whole = like(x->getType(), b.getInt32Ty());
  // Without its sign, a place further up.
  Value* const magnitude = b.CreateShl(b.CreateBitCast(x, whole), integer(whole, 1));
  const int64_t first = int64_t{low + kBias} << (kFraction + 1);
  const int64_t count = int64_t{high - low} << (kFraction + 1);
  return b.CreateICmpULT(b.CreateSub(magnitude, integer(whole, first)), integer(whole, count));
}

}  // namespace

bool fills_registers(Value* x) {
  const auto* const type = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  if (type == nullptr || !type->getElementType()->isFloatTy()) return false;
  const unsigned lanes = type->getNumElements();
  return lanes >= kFewestLanes && (lanes & (lanes - 1)) == 0;
}

Value* scaled(llvm::IRBuilderBase& b, Value* x, Value* n) {
  const int lanes = lanes_of(x);
  if (lanes <= kRegisterLanes) return scaled_register(b, x, n);
  const auto half = [&](int first) {
    return scaled(b, slice(b, x, first, lanes / 2), slice(b, n, first, lanes / 2));
  };
  Value* const low = half(0);
  return joined(b, low, half(lanes / 2));
}

/// Markstein's: with r = 1 / y and q = x r, both rounded, q + (x - q y) r rounds to the quotient,
/// where x - q y is exact. It is, as long as it stays in the range of normal numbers: with x from
/// 2^-100 its last place is at least 2^-147, and with y from 2^-24 the quotient is at most 2^124.
Value* divided_by_one(llvm::IRBuilderBase& b, Value* x, Value* y) {
  llvm::Type* const type = x->getType();
  const auto lanes = static_cast<unsigned>(lanes_of(x));
  llvm::Function* const function = b.GetInsertBlock()->getParent();
  auto* const fast = llvm::BasicBlock::Create(b.getContext(), "by_reciprocal", function);
  auto* const slow = llvm::BasicBlock::Create(b.getContext(), "by_division", function);
  auto* const end = llvm::BasicBlock::Create(b.getContext(), "divided", function);
  Value* const one = number(y->getType(), 1);
  // Of a loop, this part is computed in front of it.
  Value* const is_normal = has_exponent(b, y, -24, 24);
  Value* const reciprocal = b.CreateVectorSplat(lanes, b.CreateFDiv(one, y));
  Value* const divisor = b.CreateVectorSplat(lanes, y);

  Value* const is_outside = b.CreateOrReduce(b.CreateNot(has_exponent(b, x, -100, 100)));
  b.CreateCondBr(b.CreateAnd(is_normal, b.CreateNot(is_outside)), fast, slow);
  b.SetInsertPoint(fast);
  const auto fma = [&](Value* p, Value* q, Value* r) {
    return b.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {p, q, r});
  };
  Value* const estimate = b.CreateFMul(x, reciprocal);
  Value* const rest = fma(b.CreateFNeg(estimate), divisor, x);
  Value* const quotient = fma(rest, reciprocal, estimate);
  b.CreateBr(end);
  b.SetInsertPoint(slow);
  Value* const plain = b.CreateFDiv(x, divisor);
  b.CreateBr(end);
  b.SetInsertPoint(end);
  llvm::PHINode* const result = b.CreatePHI(type, 2);
  result->addIncoming(quotient, fast);
  result->addIncoming(plain, slow);
  return result;
}

}  // namespace kiln::codegen
