// Decides how a Dot is computed: by vpdpbusd or vdpbf16ps where the CPU has them, pairs of integers
// by pmaddwd, else by products and sums of the factors, taken out of their groups by shuffles. Both
// give the same sums, but for bfloat16, where the instruction has its own rounding and strict mode
// does not use it.
//
// vpdpbusd multiplies unsigned bytes by signed ones. Two of one kind are made so by turning the
// sign bit of `a` over, which moves it by 128: 128 times the other factor is taken off again.
// oneDNN calls that compensation.
#include <bit>
#include <numeric>

#include <llvm/IR/IntrinsicsX86.h>

#include "compiler/codegen/llvm_expr.h"
#include "compiler/codegen/llvm_values.h"
#include "compiler/ir/short_integers.h"
#include "runtime/core/error.h"

namespace kiln::codegen {

using language::Operator;
using llvm::Value;

namespace {

constexpr int kFewestLanes = 4;  // of 32 bits, in the shortest vector that the instructions take

/// Every `group`-th element, from `first` on: the i-th factor of each lane.
Value* factor_of_lanes(llvm::IRBuilderBase& b, Value* groups, int first, int group, int lanes) {
  if (lanes == 1) return b.CreateExtractElement(groups, static_cast<uint64_t>(first));
  std::vector<int> places;
  for (int lane = 0; lane < lanes; ++lane)
    places.push_back(lane * group + first);
  return b.CreateShuffleVector(groups, places);
}

bool is_bytes(const ir::Dot& node) {
  return node.type.element == DType::Int32 && node.group() == 4 &&
         ir::is_byte(node.a->type.element) && ir::is_byte(node.b->type.element);
}

/// Integers that are an int16 each, of which two are multiplied and added.
bool is_words(const ir::Dot& node) {
  return node.type.element == DType::Int32 && node.group() == 2 &&
         ir::is_word(node.a->type.element) && ir::is_word(node.b->type.element);
}

bool is_halves(const ir::Dot& node) {
  return node.type.element == DType::Float32 && node.group() == 2 &&
         node.a->type.element == DType::BFloat16 && node.b->type.element == DType::BFloat16;
}

llvm::Intrinsic::ID bytes_of(int lanes) {
  if (lanes == 16) return llvm::Intrinsic::x86_avx512_vpdpbusd_512;
  return lanes == 8 ? llvm::Intrinsic::x86_avx512_vpdpbusd_256
                    : llvm::Intrinsic::x86_avx512_vpdpbusd_128;
}

llvm::Intrinsic::ID words_of(int lanes) {
  if (lanes == 16) return llvm::Intrinsic::x86_avx512_pmaddw_d_512;
  return lanes == 8 ? llvm::Intrinsic::x86_avx2_pmadd_wd : llvm::Intrinsic::x86_sse2_pmadd_wd;
}

llvm::Intrinsic::ID halves_of(int lanes) {
  if (lanes == 16) return llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512;
  return lanes == 8 ? llvm::Intrinsic::x86_avx512bf16_dpbf16ps_256
                    : llvm::Intrinsic::x86_avx512bf16_dpbf16ps_128;
}

/// Two products of int16 are a sum of int32, which wraps.
Value* dot_of_words(llvm::IRBuilderBase& b, Value* sum, Value* x, Value* y) {
  auto* const type = llvm::cast<llvm::FixedVectorType>(sum->getType());
  const auto lanes = type->getNumElements();
  auto* const words = llvm::FixedVectorType::get(b.getInt16Ty(), 2 * lanes);
  return b.CreateAdd(sum,
                     b.CreateIntrinsic(words_of(static_cast<int>(lanes)), {},
                                       {b.CreateBitCast(x, words), b.CreateBitCast(y, words)}));
}

/// Two vectors of one length, one behind the other; of all, a power of two of them.
Value* joined(llvm::IRBuilderBase& b, std::vector<Value*> parts) {
  while (parts.size() > 1) {
    std::vector<Value*> pairs;
    for (size_t i = 0; i < parts.size(); i += 2) {
      const auto* const type = llvm::cast<llvm::FixedVectorType>(parts[i]->getType());
      std::vector<int> places(2 * type->getNumElements());
      std::iota(places.begin(), places.end(), 0);
      pairs.push_back(b.CreateShuffleVector(parts[i], parts[i + 1], places));
    }
    parts = std::move(pairs);
  }
  return parts[0];
}

/// The vector with as many more lanes, of which nobody asks what they hold.
Value* widened(llvm::IRBuilderBase& b, Value* vector, int lanes, int wanted) {
  std::vector<int> places(static_cast<size_t>(wanted), -1);
  std::iota(places.begin(), places.begin() + lanes, 0);
  return b.CreateShuffleVector(vector, places);
}

}  // namespace

Value* ExprEmitter::dot(const ir::Dot& node) {
  const DType type = node.type.element;
  const int lanes = node.type.lanes;
  const int group = node.group();
  int widest = 0;
  if (is_bytes(node)) widest = lane_access_.dots_bytes;
  if (is_words(node)) widest = lane_access_.dots_words;
  if (is_halves(node)) widest = lane_access_.dots_halves;
  if (widest > 0 && std::has_single_bit(static_cast<unsigned>(lanes)))
    return dot_by_instruction(node, widest);

  Value* const start = emit(node.start, Use::Data);
  Value* const a = emit(node.a, Use::Data);
  Value* const b = emit(node.b, Use::Data);
  const bool shares_a = node.a->type.lanes == group;
  Value* const left = convert(b_, a, node.a->type.element, type);
  Value* const right = convert(b_, b, node.b->type.element, type);
  Value* sum = start;
  for (int i = 0; i < group; ++i) {
    Value* x = factor_of_lanes(b_, left, i, group, shares_a ? 1 : lanes);
    if (shares_a && lanes > 1) x = b_.CreateVectorSplat(static_cast<unsigned>(lanes), x);
    Value* const y = factor_of_lanes(b_, right, i, group, lanes);
    sum = math_.binary(Operator::Add, sum, math_.binary(Operator::Mul, x, y, type), type);
  }
  return sum;
}

/// Vector by vector; an instruction takes the groups as words of 32 bits.
Value* ExprEmitter::dot_by_instruction(const ir::Dot& node, int widest) {
  const int lanes = node.type.lanes;
  const int group = node.group();
  const int width = std::clamp(lanes, kFewestLanes, widest);
  const auto part_of = [&](Value* vector, int first, int elements) {
    if (lanes < width) return widened(b_, vector, lanes * elements, width * elements);
    return lanes == width ? vector : slice(b_, vector, first * elements, width * elements);
  };
  auto* const words = llvm::FixedVectorType::get(b_.getInt32Ty(), static_cast<unsigned>(width));
  const auto vector_of = [&](Value* value) {
    if (lanes > 1) return value;
    auto* const type = llvm::FixedVectorType::get(value->getType(), 1);
    return b_.CreateInsertElement(llvm::PoisonValue::get(type), value, uint64_t{0});
  };
  Value* const start = vector_of(emit(node.start, Use::Data));
  const bool shares_a = node.a->type.lanes == group;
  const bool in_words = is_words(node);
  Value* const a =
      shares_a ? word_in_lanes(node.a, width, in_words) : factor_of_dot(node.a, in_words);
  Value* const b = factor_of_dot(node.b, in_words);
  const auto dot = [&](Value* sum, Value* x, Value* y) {
    if (in_words) return dot_of_words(b_, sum, x, y);
    return is_bytes(node) ? dot_of_bytes(node, sum, x, y) : dot_of_halves(sum, x, y);
  };
  std::vector<Value*> sums;
  for (int first = 0; first < lanes; first += width) {
    Value* const x = shares_a ? a : b_.CreateBitCast(part_of(a, first, group), words);
    Value* const y = b_.CreateBitCast(part_of(b, first, group), words);
    Value* const sum = part_of(start, first, 1);
    sums.push_back(dot(sum, x, y));
  }
  Value* const result = joined(b_, std::move(sums));
  if (lanes == 1) return b_.CreateExtractElement(result, uint64_t{0});
  return lanes < width ? slice(b_, result, 0, lanes) : result;
}

/// `is_words`: as int16, whatever it is.
Value* ExprEmitter::factor_of_dot(const ir::Expr& factor, bool is_words) {
  Value* const value = emit(factor, Use::Data);
  return is_words ? convert(b_, value, factor->type.element, DType::Int16) : value;
}

/// A group as a word in all lanes. Bits are turned over there: a load that is a word to begin with
/// is one instruction with all of its lanes.
Value* ExprEmitter::word_in_lanes(const ir::Expr& group, int lanes, bool is_words) {
  const auto* turned = ir::as<ir::Binary>(group);
  if (turned != nullptr && turned->op == Operator::BitXor && !is_words) {
    return b_.CreateXor(word_in_lanes(turned->a, lanes, false),
                        word_in_lanes(turned->b, lanes, false));
  }
  return b_.CreateVectorSplat(static_cast<unsigned>(lanes),
                              b_.CreateBitCast(factor_of_dot(group, is_words), b_.getInt32Ty()));
}

Value* ExprEmitter::dot_of_halves(Value* sum, Value* x, Value* y) {
  auto* const type = llvm::cast<llvm::FixedVectorType>(sum->getType());
  const auto lanes = type->getNumElements();
  auto* const halves = llvm::FixedVectorType::get(b_.getBFloatTy(), 2 * lanes);
  return b_.CreateIntrinsic(halves_of(static_cast<int>(lanes)), {},
                            {sum, b_.CreateBitCast(x, halves), b_.CreateBitCast(y, halves)});
}

// Rows of a tile share `y`, and with it what is taken off, which LLVM computes once for all.
Value* ExprEmitter::dot_of_bytes(const ir::Dot& node, Value* sum, Value* x, Value* y) {
  const DType of_x = node.a->type.element;
  const DType of_y = node.b->type.element;
  auto* const type = llvm::cast<llvm::FixedVectorType>(sum->getType());
  const llvm::Intrinsic::ID add = bytes_of(static_cast<int>(type->getNumElements()));
  // The unsigned ones come first.
  const auto dot = [&](Value* start, Value* a, Value* b, bool is_swapped) {
    if (is_swapped) std::swap(a, b);
    return b_.CreateIntrinsic(add, {}, {start, a, b});
  };
  if (of_x != of_y) return dot(sum, x, y, of_x == DType::Int8);
  // int8 becomes uint8 and the reverse. As the other kind of number the turned bits alone, 0x80,
  // are 128, or -128 where they are signed.
  Value* const turned = integer(type, static_cast<int32_t>(0x80808080U));
  const bool is_swapped = of_x == DType::UInt8;
  Value* const moved = dot(integer(type, 0), turned, y, is_swapped);
  return b_.CreateSub(dot(sum, b_.CreateXor(x, turned), y, is_swapped), moved);
}

}  // namespace kiln::codegen
