// Decides how a Dot is computed: by vpdpbusd or vdpbf16ps where the CPU has them and the lanes fill
// registers, else by products and sums of the factors, taken out of their groups by shuffles. Both
// give the same sums, but for bfloat16, where the instruction has its own rounding and strict mode
// does not use it.
#include <llvm/IR/IntrinsicsX86.h>

#include "compiler/codegen/llvm_expr.h"
#include "compiler/codegen/llvm_values.h"
#include "runtime/core/error.h"

namespace kiln::codegen {

using language::Operator;
using llvm::Value;

namespace {

constexpr int kLanes = 16;  // of 32 bits, in a vector of 64 bytes

/// Every `group`-th element, from `first` on: the i-th factor of each lane.
Value* factor_of_lanes(llvm::IRBuilderBase& b, Value* groups, int first, int group, int lanes) {
  if (lanes == 1) return b.CreateExtractElement(groups, static_cast<uint64_t>(first));
  std::vector<int> places;
  for (int lane = 0; lane < lanes; ++lane)
    places.push_back(lane * group + first);
  return b.CreateShuffleVector(groups, places);
}

bool is_bytes(const ir::Dot& node) {
  const DType a = node.a->type.element;
  const DType b = node.b->type.element;
  return node.type.element == DType::Int32 && node.group() == 4 &&
         ((a == DType::UInt8 && b == DType::Int8) || (a == DType::Int8 && b == DType::UInt8));
}

bool is_halves(const ir::Dot& node) {
  return node.type.element == DType::Float32 && node.group() == 2 &&
         node.a->type.element == DType::BFloat16 && node.b->type.element == DType::BFloat16;
}

}  // namespace

Value* ExprEmitter::dot(const ir::Dot& node) {
  const DType type = node.type.element;
  const int lanes = node.type.lanes;
  const int group = node.group();
  Value* const start = emit(node.start, Use::Data);
  Value* const a = emit(node.a, Use::Data);
  Value* const b = emit(node.b, Use::Data);
  const bool has_instruction =
      (is_bytes(node) && lane_access_.dots_bytes) || (is_halves(node) && lane_access_.dots_halves);
  if (has_instruction && lanes % kLanes == 0) return dot_by_instruction(node, start, a, b);

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
Value* ExprEmitter::dot_by_instruction(const ir::Dot& node, Value* start, Value* a, Value* b) {
  const int lanes = node.type.lanes;
  const int group = node.group();
  const bool bytes = is_bytes(node);
  auto* const words = llvm::FixedVectorType::get(b_.getInt32Ty(), kLanes);
  auto* const halves = llvm::FixedVectorType::get(b_.getBFloatTy(), 2 * kLanes);
  const auto words_of = [&](Value* groups, int vector) {
    Value* const part =
        lanes == kLanes ? groups : slice(b_, groups, vector * kLanes * group, kLanes * group);
    return b_.CreateBitCast(part, words);
  };
  Value* const shared = node.a->type.lanes == group
                            ? b_.CreateVectorSplat(kLanes, b_.CreateBitCast(a, b_.getInt32Ty()))
                            : nullptr;
  std::vector<Value*> sums;
  for (int vector = 0; vector < lanes / kLanes; ++vector) {
    Value* const sum = lanes == kLanes ? start : slice(b_, start, vector * kLanes, kLanes);
    Value* x = shared != nullptr ? shared : words_of(a, vector);
    Value* y = words_of(b, vector);
    if (bytes) {
      if (node.a->type.element == DType::Int8) std::swap(x, y);  // the unsigned ones come first
      sums.push_back(b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpdpbusd_512, {}, {sum, x, y}));
    } else {
      sums.push_back(
          b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512, {},
                             {sum, b_.CreateBitCast(x, halves), b_.CreateBitCast(y, halves)}));
    }
  }
  Value* result = sums[0];
  for (size_t i = 1; i < sums.size(); ++i) {
    // Shuffles take operands of one length.
    const int have = static_cast<int>(i) * kLanes;
    std::vector<int> wide;
    std::vector<int> places;
    for (int lane = 0; lane < have; ++lane) {
      wide.push_back(lane < kLanes ? lane : -1);
      places.push_back(lane);
    }
    Value* const next = have == kLanes ? sums[i] : b_.CreateShuffleVector(sums[i], wide);
    for (int lane = 0; lane < kLanes; ++lane)
      places.push_back(have + lane);
    result = b_.CreateShuffleVector(result, next, places);
  }
  return result;
}

}  // namespace kiln::codegen
