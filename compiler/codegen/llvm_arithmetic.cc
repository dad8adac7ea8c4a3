// Arithmetic that is faster than LLVM's own expansion and rounds the same: 2^n scaling by AVX-512's
// vscalef, and division of many lanes by one number through its reciprocal, after Markstein,
// "Computation of elementary functions on the IBM RISC System/6000 processor" (1990).
#include "compiler/codegen/llvm_arithmetic.h"

#include <bit>
#include <utility>

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>

#include "compiler/codegen/llvm_values.h"
#include "runtime/core/error.h"

namespace kiln::codegen {

using llvm::Value;

namespace {

constexpr unsigned kRegisterBits = 512;  // of the widest register
constexpr unsigned kFewestBits = 128;    // and of the narrowest

int lanes_of(Value* x) {
  return static_cast<int>(llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements());
}

Value* joined(llvm::IRBuilderBase& b, Value* low, Value* high) {
  std::vector<int> places;
  for (int i = 0; i < 2 * lanes_of(low); ++i)
    places.push_back(i);
  return b.CreateShuffleVector(low, high, places);
}

unsigned bits_of(Value* x) {
  return static_cast<unsigned>(lanes_of(x)) * x->getType()->getScalarSizeInBits();
}

/// vscalefps or vscalefpd of one register. Its last operand of 512 bits is the rounding mode, of
/// which 4 means the current one; the masks take all lanes.
Value* scaled_register(llvm::IRBuilderBase& b, Value* x, Value* n) {
  const bool is_double = x->getType()->getScalarType()->isDoubleTy();
  Value* const zero = llvm::Constant::getNullValue(x->getType());
  if (bits_of(x) == kRegisterBits) {
    constexpr uint32_t kCurrentRounding = 4;
    const auto id = is_double ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_512
                              : llvm::Intrinsic::x86_avx512_mask_scalef_ps_512;
    Value* const all = is_double ? b.getInt8(0xff) : b.getInt16(0xffff);
    return b.CreateIntrinsic(id, {}, {x, n, zero, all, b.getInt32(kCurrentRounding)});
  }
  const bool is_half = bits_of(x) == kRegisterBits / 2;
  const auto of_float = is_half ? llvm::Intrinsic::x86_avx512_mask_scalef_ps_256
                                : llvm::Intrinsic::x86_avx512_mask_scalef_ps_128;
  const auto of_double = is_half ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_256
                                 : llvm::Intrinsic::x86_avx512_mask_scalef_pd_128;
  return b.CreateIntrinsic(is_double ? of_double : of_float, {}, {x, n, zero, b.getInt8(0xff)});
}

/// Whether all lanes are less than a number, without signs. Registers are compared with each other
/// first, which is an instruction each, and the largest lanes with the number.
Value* are_below(llvm::IRBuilderBase& b, Value* x, int64_t limit) {
  // Registers of other sizes than this have two of its instructions, or half of one.
  constexpr unsigned kCommonBits = 256;
  while (bits_of(x) > kCommonBits) {
    const int half = lanes_of(x) / 2;
    x = b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, slice(b, x, 0, half),
                                slice(b, x, half, half));
  }
  return b.CreateNot(b.CreateOrReduce(b.CreateICmpUGE(x, integer(x->getType(), limit))));
}

/// Whether the magnitudes of all floats lie in 2^low .. 2^high; 0, nan and infinity do not.
Value* have_exponents(llvm::IRBuilderBase& b, Value* x, int low, int high) {
  constexpr int kBias = 127;
  constexpr int kFraction = 23;
  llvm::Type* const whole = like(x->getType(), b.getInt32Ty());
  // Without its sign, a place further up.
  Value* const magnitude = b.CreateShl(b.CreateBitCast(x, whole), integer(whole, 1));
  const int64_t first = int64_t{low + kBias} << (kFraction + 1);
  const int64_t count = int64_t{high - low} << (kFraction + 1);
  Value* const distance = b.CreateSub(magnitude, integer(whole, first));
  if (!x->getType()->isVectorTy()) return b.CreateICmpULT(distance, integer(whole, count));
  return are_below(b, distance, count);
}

}  // namespace

bool fills_registers(Value* x) {
  const auto* const type = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  if (type == nullptr ||
      !(type->getElementType()->isFloatTy() || type->getElementType()->isDoubleTy()))
    return false;
  const unsigned lanes = type->getNumElements();
  return bits_of(x) >= kFewestBits && (lanes & (lanes - 1)) == 0;
}

Value* scaled(llvm::IRBuilderBase& b, Value* x, Value* n) {
  if (bits_of(x) <= kRegisterBits) return scaled_register(b, x, n);
  const int lanes = lanes_of(x);
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
  Value* const one = number(y->getType(), 1);
  // Of a loop, this part is computed in front of it.
  Value* const is_normal = have_exponents(b, y, -24, 24);
  Value* const reciprocal = b.CreateVectorSplat(lanes, b.CreateFDiv(one, y));
  Value* const divisor = b.CreateVectorSplat(lanes, y);

  const auto by_reciprocal = [&] {
    const auto fma = [&](Value* p, Value* q, Value* r) {
      return b.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {p, q, r});
    };
    Value* const estimate = b.CreateFMul(x, reciprocal);
    Value* const rest = fma(b.CreateFNeg(estimate), divisor, x);
    return fma(rest, reciprocal, estimate);
  };
  return chosen(b, b.CreateAnd(is_normal, have_exponents(b, x, -100, 100)), by_reciprocal,
                [&] { return b.CreateFDiv(x, divisor); });
}

Value* are_at_most(llvm::IRBuilderBase& b, Value* x, double limit) {
  const bool is_double = x->getType()->getScalarType()->isDoubleTy();
  const unsigned words = static_cast<unsigned>(lanes_of(x)) * (is_double ? 2 : 1);
  llvm::Type* const whole = like(x->getType(), is_double ? b.getInt64Ty() : b.getInt32Ty());
  // Of a double the upper word, which comes second.
  const int64_t kept = is_double ? int64_t{0x7fffffff} << 32 : 0x7fffffff;
  Value* const magnitude = b.CreateAnd(b.CreateBitCast(x, whole), integer(whole, kept));
  auto* const type = llvm::FixedVectorType::get(b.getInt32Ty(), words);
  const int64_t last = is_double ? std::bit_cast<int64_t>(limit) >> 32
                                 : std::bit_cast<int32_t>(static_cast<float>(limit));
  return are_below(b, b.CreateBitCast(magnitude, type), last + 1);
}

Value* chosen(llvm::IRBuilderBase& b, Value* condition, llvm::function_ref<Value*()> usual,
              llvm::function_ref<Value*()> other) {
  llvm::Function* const function = b.GetInsertBlock()->getParent();
  auto* const yes = llvm::BasicBlock::Create(b.getContext(), "usual", function);
  auto* const no = llvm::BasicBlock::Create(b.getContext(), "other", function);
  auto* const end = llvm::BasicBlock::Create(b.getContext(), "chosen", function);
  b.CreateCondBr(condition, yes, no, llvm::MDBuilder(b.getContext()).createLikelyBranchWeights());
  const auto branch = [&](llvm::BasicBlock* block, llvm::function_ref<Value*()> emit) {
    b.SetInsertPoint(block);
    Value* const value = emit();
    llvm::BasicBlock* const last = b.GetInsertBlock();
    b.CreateBr(end);
    return std::pair(value, last);
  };
  const auto [first, first_block] = branch(yes, usual);
  const auto [second, second_block] = branch(no, other);
  b.SetInsertPoint(end);
  llvm::PHINode* const result = b.CreatePHI(first->getType(), 2);
  result->addIncoming(first, first_block);
  result->addIncoming(second, second_block);
  return result;
}

}  // namespace kiln::codegen
