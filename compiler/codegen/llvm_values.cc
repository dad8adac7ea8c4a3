// Represents Kiln's types in LLVM and converts between them. Floats of 8 bits and bfloat16 are
// rounded by integer arithmetic on the bits of a float32; from a double or an int they are rounded
// to odd first, so that rounding twice is as rounding once (Boldo and Melquiond, "Emulation of a
// FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
#include "compiler/codegen/llvm_values.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>

#include "runtime/core/error.h"

namespace kiln::codegen {
namespace {

using llvm::IRBuilderBase;
using llvm::Value;

llvm::Type* element_type(llvm::LLVMContext& context, DType type) {
  switch (type) {
    case DType::Bool: return llvm::Type::getInt1Ty(context);
    case DType::Float16: return llvm::Type::getHalfTy(context);
    case DType::Float32: return llvm::Type::getFloatTy(context);
    case DType::Float64: return llvm::Type::getDoubleTy(context);
    default: return llvm::Type::getIntNTy(context, static_cast<unsigned>(bits_of(type)));
  }
}

/// The layout of a float that float32 contains. float8_e4m3fn has no infinity, and one nan: all
/// bits set.
struct SmallFormat {
  int mantissa_bits;
  int bias;
  int64_t largest;   // bits of the largest finite value
  int64_t overflow;  // bits of what is past it
  int64_t nan;
};

SmallFormat format_of(DType type) {
  switch (type) {
    case DType::BFloat16: return {7, 127, 0x7f7f, 0x7f80, 0x7fc0};
    case DType::Float8E4M3FN: return {3, 7, 0x7e, 0x7f, 0x7f};
    case DType::Float8E5M2: return {2, 15, 0x7b, 0x7c, 0x7e};
    default: KILN_CHECK(!"a float format with bits of its own");
  }
}

Value* bits_of_float(IRBuilderBase& b, Value* value) {
  return b.CreateBitCast(value, like(value->getType(), b.getInt32Ty()));
}
Value* float_of_bits(IRBuilderBase& b, Value* bits) {
  return b.CreateBitCast(bits, like(bits->getType(), b.getFloatTy()));
}

/// Rounds to the format in the bits of the float: adding half of the last place carries into the
/// exponent as it should. Below the smallest normal number an addition rounds instead.
Value* encode(IRBuilderBase& b, Value* value, DType to) {
  const SmallFormat format = format_of(to);
  Value* const bits = bits_of_float(b, value);
  llvm::Type* const type = bits->getType();
  Value* const magnitude = b.CreateAnd(bits, integer(type, 0x7fffffff));
  const int dropped = 23 - format.mantissa_bits;

  Value* const odd = b.CreateAnd(b.CreateLShr(magnitude, integer(type, dropped)), integer(type, 1));
  Value* const half = b.CreateAdd(odd, integer(type, (1 << (dropped - 1)) - 1));
  Value* const rounded = b.CreateLShr(b.CreateAdd(magnitude, half), integer(type, dropped));
  Value* result =
      b.CreateSub(rounded, integer(type, int64_t{127 - format.bias} << format.mantissa_bits));

  if (format.bias != 127) {
    const int64_t least_normal = int64_t{128 - format.bias} << 23;
    const int64_t anchor = int64_t{127 + 24 - format.bias - format.mantissa_bits} << 23;
    Value* const anchored =
        b.CreateFAdd(float_of_bits(b, magnitude), float_of_bits(b, integer(type, anchor)));
    Value* const subnormal = b.CreateSub(bits_of_float(b, anchored), integer(type, anchor));
    result =
        b.CreateSelect(b.CreateICmpULT(magnitude, integer(type, least_normal)), subnormal, result);
  }
  const int64_t rebias = int64_t{127 - format.bias} << format.mantissa_bits;
  Value* const past = b.CreateICmpUGT(rounded, integer(type, format.largest + rebias));
  result = b.CreateSelect(past, integer(type, format.overflow), result);
  Value* const is_nan = b.CreateICmpUGT(magnitude, integer(type, 0x7f800000));
  result = b.CreateSelect(is_nan, integer(type, format.nan), result);

  Value* const sign =
      b.CreateLShr(b.CreateAnd(bits, integer(type, 0x80000000)), integer(type, 32 - bits_of(to)));
  return b.CreateTrunc(b.CreateOr(result, sign),
                       like(type, b.getIntNTy(static_cast<unsigned>(bits_of(to)))));
}

/// A float so rounded from a double that rounding it again to a smaller float is as rounding once:
/// to zero, with the last bit set when anything was lost.
Value* round_to_odd(IRBuilderBase& b, Value* value) {
  Value* const nearest = b.CreateFPTrunc(value, like(value->getType(), b.getFloatTy()));
  Value* const bits = bits_of_float(b, nearest);
  llvm::Type* const type = bits->getType();
  Value* const back = b.CreateFPExt(nearest, value->getType());
  Value* const magnitude = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, value);
  Value* const back_magnitude = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back);
  Value* const away = b.CreateFCmpOGT(back_magnitude, magnitude);
  Value* const to_zero = b.CreateSub(bits, b.CreateZExt(away, type));
  Value* const inexact = b.CreateFCmpONE(back, value);
  return float_of_bits(b, b.CreateOr(to_zero, b.CreateZExt(inexact, type)));
}

Value* convert_from_float(IRBuilderBase& b, Value* value, DType from, DType to) {
  if (is_small_float(from)) {
    value = widen_small_float(b, value, from);
    from = DType::Float32;
  }
  llvm::Type* const type = like(value->getType(), element_type(b.getContext(), to));
  if (to == DType::Bool) return b.CreateFCmpUNE(value, number(value->getType(), 0));
  if (is_int(to)) {
    const auto id = is_signed_int(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
    return b.CreateIntrinsic(id, {type, value->getType()}, {value});
  }
  if (is_small_float(to)) {
    return round_to_small_float(b, from == DType::Float64 ? round_to_odd(b, value) : value, to);
  }
  return b.CreateFPCast(value, type);
}

/// To a small float by way of a double, which most integers fit exactly, rounded to odd.
Value* convert_from_int(IRBuilderBase& b, Value* value, DType from, DType to) {
  llvm::Type* const type = like(value->getType(), element_type(b.getContext(), to));
  const bool is_signed = is_signed_int(from);
  if (to == DType::Bool) return b.CreateICmpNE(value, integer(value->getType(), 0));
  if (is_int(to)) return b.CreateIntCast(value, type, is_signed);
  llvm::Type* const wide =
      like(value->getType(), is_small_float(to) ? b.getDoubleTy() : type->getScalarType());
  Value* const result = is_signed ? b.CreateSIToFP(value, wide) : b.CreateUIToFP(value, wide);
  return is_small_float(to) ? round_to_small_float(b, round_to_odd(b, result), to) : result;
}

}  // namespace

llvm::Type* value_type(llvm::LLVMContext& context, ir::Type type) {
  llvm::Type* const element = element_type(context, type.element);
  if (type.lanes == 1) return element;
  return llvm::FixedVectorType::get(element, static_cast<unsigned>(type.lanes));
}

llvm::Type* memory_type(llvm::LLVMContext& context, DType type) {
  if (type == DType::Bool) return llvm::Type::getInt8Ty(context);
  if (type == DType::Float16) return llvm::Type::getInt16Ty(context);
  return element_type(context, type);
}

bool is_small_float(DType type) {
  return is_float(type) && type != DType::Float32 && type != DType::Float64;
}

llvm::Constant* number(llvm::Type* type, double value) {
  return llvm::ConstantFP::get(type, value);
}
llvm::Constant* integer(llvm::Type* type, int64_t value) {
  return llvm::ConstantInt::get(type, static_cast<uint64_t>(value), /*IsSigned=*/true);
}

llvm::Type* like(llvm::Type* shape, llvm::Type* element) {
  if (const auto* vector = llvm::dyn_cast<llvm::VectorType>(shape)) {
    return llvm::VectorType::get(element, vector->getElementCount());
  }
  return element;
}

Value* slice(IRBuilderBase& b, Value* vector, int first, int count) {
  std::vector<int> places;
  places.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i)
    places.push_back(first + i);
  return b.CreateShuffleVector(vector, places);
}

Value* widen_small_float(IRBuilderBase& b, Value* value, DType from) {
  if (from == DType::Float16) return b.CreateFPExt(value, like(value->getType(), b.getFloatTy()));
  llvm::Type* const wide = like(value->getType(), b.getInt32Ty());
  if (from == DType::BFloat16) {
    return float_of_bits(b, b.CreateShl(b.CreateZExt(value, wide), integer(wide, 16)));
  }
  if (from == DType::Float8E5M2) {  // the upper half of a float16
    llvm::Type* const half_bits = like(value->getType(), b.getInt16Ty());
    Value* const bits = b.CreateShl(b.CreateZExt(value, half_bits), integer(half_bits, 8));
    return b.CreateFPExt(b.CreateBitCast(bits, like(wide, b.getHalfTy())),
                         like(wide, b.getFloatTy()));
  }
  // Exponent and mantissa in their places, then a product that corrects the bias, of subnormal
  // numbers too.
  Value* const bits = b.CreateZExt(value, wide);
  Value* const magnitude = b.CreateAnd(bits, integer(wide, 0x7f));
  Value* const placed = float_of_bits(b, b.CreateShl(magnitude, integer(wide, 20)));
  Value* const scaled = b.CreateFMul(placed, number(placed->getType(), 0x1p120));
  Value* const is_nan = b.CreateICmpEQ(magnitude, integer(wide, 0x7f));
  Value* const finite_bits =
      b.CreateSelect(is_nan, integer(wide, 0x7fc00000), bits_of_float(b, scaled));
  Value* const sign = b.CreateShl(b.CreateAnd(bits, integer(wide, 0x80)), integer(wide, 24));
  return float_of_bits(b, b.CreateOr(finite_bits, sign));
}

Value* round_to_small_float(IRBuilderBase& b, Value* value, DType to) {
  if (to == DType::Float16) return b.CreateFPTrunc(value, like(value->getType(), b.getHalfTy()));
  return encode(b, value, to);
}

Value* convert(IRBuilderBase& b, Value* value, DType from, DType to) {
  if (from == to) return value;
  if (is_float(from)) return convert_from_float(b, value, from, to);
  if (from == DType::Bool && is_float(to)) {
    // 0 and 1 have no rounding; through a byte, so that the sign of i1 plays no part.
    value = b.CreateZExt(value, like(value->getType(), b.getInt8Ty()));
    from = DType::UInt8;
  }
  return convert_from_int(b, value, from, to);
}

}  // namespace kiln::codegen
