// Decides how each load and store reaches memory: one instruction for contiguous lanes, reversed
// ones and those a few elements apart by shuffles of rows, the rest by gather and scatter where the
// CPU has them and lane by lane where not. Masks become masked instructions, or addresses of a
// spare place on the stack instead of branches.
#include <algorithm>
#include <numeric>

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "compiler/codegen/llvm_expr.h"
#include "compiler/codegen/llvm_values.h"
#include "runtime/core/error.h"

namespace kiln::codegen {

using ir::Expr;
using llvm::Value;

namespace {

int lanes_of(Value* vector) {
  return static_cast<int>(llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements());
}

/// first, first + 1, ..: so many.
llvm::SmallVector<int, 64> lanes_from(int first, int count) {
  llvm::SmallVector<int, 64> lanes(static_cast<size_t>(count));
  std::iota(lanes.begin(), lanes.end(), first);
  return lanes;
}

/// Of an element: arguments are aligned to no more, so vectors are loaded and stored unaligned.
llvm::Align alignment_of(DType type) { return llvm::Align(static_cast<uint64_t>(size_of(type))); }

/// The lanes last first.
Value* reversed(llvm::IRBuilderBase& b, Value* vector, int lanes) {
  std::vector<int> order;
  for (int lane = lanes; lane-- > 0;) {
    order.push_back(lane);
  }
  return b.CreateShuffleVector(vector, order);
}

}  // namespace

template <typename T>
T* ExprEmitter::tagged(T* instruction, const BufferPlace& place) {
  if (place.tag != nullptr) instruction->setMetadata(llvm::LLVMContext::MD_tbaa, place.tag);
  return instruction;
}

// i*8 + 3 is base i*8 and constant 3, so that the accesses of an unrolled loop share their base.
ExprEmitter::Place ExprEmitter::place_in(const Expr& index) {
  const ir::ExprNode* rest = index.get();
  int64_t constant = 0;
  while (is_plain_index(Expr(rest))) {
    const auto* const node = ir::as<ir::Binary>(rest);
    if (node == nullptr) break;
    const bool adds = node->op == language::Operator::Add;
    if (!adds && node->op != language::Operator::Sub) break;
    const auto* const number = ir::as<ir::IntImm>(node->b);
    if (number == nullptr) break;
    constant += adds ? number->value : -number->value;
    rest = node->a.get();
  }
  if (const auto* const number = ir::as<ir::IntImm>(rest)) {
    return {b_.getInt64(0), constant + number->value};
  }
  return {emit(Expr(rest), Use::Index), constant};
}

/// The constant is part of the index, and none of an address: LLVM takes an index that only one
/// address uses apart, and computes its parts inside of loops.
Value* ExprEmitter::element_address(const BufferPlace& place, DType type, const Place& element) {
  Value* const constant = b_.getInt64(static_cast<uint64_t>(element.constant));
  Value* index = element.base;
  if (llvm::isa<llvm::ConstantInt>(index)) {
    index = b_.CreateNSWAdd(index, constant);
  } else if (element.constant != 0) {
    index = linear(language::Operator::Add, index, constant);
  }
  return known_.once(KnownValues::Kind::Element, place.pointer, index, size_of(type), [&] {
    return b_.CreateInBoundsGEP(memory_type(b_.getContext(), type), place.pointer, index);
  });
}

Value* ExprEmitter::lanes_addresses(const BufferPlace& place, DType type, Value* indices) {
  return b_.CreateInBoundsGEP(memory_type(b_.getContext(), type), place.pointer, indices);
}

/// Of lanes equally far apart from the first one's address on, which LLVM has shorter indices for.
Value* ExprEmitter::addresses_at(const BufferPlace& place, DType type, const Expr& index,
                                 const std::optional<Progression>& row) {
  if (!row) return lanes_addresses(place, type, emit(index, Use::Index));
  std::vector<llvm::Constant*> steps;
  for (int64_t lane = 0; lane < index->type.lanes; ++lane)
    steps.push_back(b_.getInt64(static_cast<uint64_t>(lane * row->stride)));
  return b_.CreateInBoundsGEP(memory_type(b_.getContext(), type),
                              element_address(place, type, row->first),
                              llvm::ConstantVector::get(steps));
}

// bool is a byte in memory, of which anything but 0 is true; float16 is loaded as an integer.
Value* ExprEmitter::from_memory(Value* value, DType type) {
  if (type == DType::Bool) return b_.CreateICmpNE(value, integer(value->getType(), 0));
  if (type == DType::Float16)
    return b_.CreateBitCast(value, like(value->getType(), b_.getHalfTy()));
  return value;
}

Value* ExprEmitter::to_memory(Value* value, DType type) {
  if (type == DType::Bool) return b_.CreateZExt(value, like(value->getType(), b_.getInt8Ty()));
  if (type == DType::Float16) {
    return b_.CreateBitCast(value, like(value->getType(), b_.getInt16Ty()));
  }
  return value;
}

Value* ExprEmitter::active_mask(const Expr& predicate, int lanes) {
  Value* mask = predicate ? emit(predicate, Use::Data) : nullptr;
  if (mask_ == nullptr) return mask;
  if (lanes == 1) {
    Value* const any = any_lane(mask_);
    return mask != nullptr ? b_.CreateAnd(mask, any) : any;
  }
  return mask != nullptr ? b_.CreateAnd(mask, mask_) : mask_;
}

Value* ExprEmitter::any_lane(Value* mask) {
  return mask->getType()->isVectorTy() ? b_.CreateOrReduce(mask) : mask;
}

/// The value of `body` where the condition holds, else 0. Without a type: nothing.
template <typename Body>
Value* ExprEmitter::when(Value* condition, llvm::Type* type, Body&& body) {
  if (condition == nullptr) return body();
  llvm::BasicBlock* const before = b_.GetInsertBlock();
  auto* const run = llvm::BasicBlock::Create(b_.getContext(), "active", before->getParent());
  auto* const end = llvm::BasicBlock::Create(b_.getContext(), "passed", before->getParent());
  b_.CreateCondBr(condition, run, end);
  b_.SetInsertPoint(run);
  Value* const value = body();
  llvm::BasicBlock* const last = b_.GetInsertBlock();
  b_.CreateBr(end);
  b_.SetInsertPoint(end);
  if (type == nullptr) return nullptr;
  llvm::PHINode* const result = b_.CreatePHI(type, 2);
  result->addIncoming(value, last);
  result->addIncoming(llvm::Constant::getNullValue(type), before);
  return result;
}

Value* ExprEmitter::load(const ir::Load& node) {
  KILN_CHECK(node.indices.size() == 1);
  const Expr& index = node.indices[0];
  const BufferPlace place = place_of(node.buffer);
  const DType type = node.buffer->type;
  Value* const mask = active_mask(node.predicate, node.type.lanes);
  if (node.type.lanes == 1) {
    return load_scalar(element_address(place, type, place_in(index)), node, mask);
  }
  const std::optional<Progression> row = progression(index);
  const bool is_row = row && row->stride >= -1 && row->stride <= 1;
  if (is_row && (mask == nullptr || row->stride == 0 || has_masks(type))) {
    return load_row(place, *row, node, mask);
  }
  // A gather takes as long as a load for each lane, and of bytes and halves there is none.
  const int64_t most_apart = size_of(type) >= 4 ? 2 : 4;
  if (row && row->stride >= 2 && row->stride <= most_apart && row->stride <= node.type.lanes &&
      (mask == nullptr || has_masks(type))) {
    return load_apart(place, row->first, row->stride, node, mask);
  }
  if (!lane_access_.gathers) return load_lanes(place, node, mask);

  llvm::Type* const lanes =
      like(value_type(b_.getContext(), node.type), memory_type(b_.getContext(), type));
  Value* const addresses = addresses_at(place, type, index, row);
  Value* const all = llvm::Constant::getAllOnesValue(like(lanes, b_.getInt1Ty()));
  Value* const gathered = tagged(
      b_.CreateMaskedGather(lanes, addresses, alignment_of(type), mask != nullptr ? mask : all,
                            llvm::Constant::getNullValue(lanes)),
      place);
  return from_memory(gathered, type);
}

/// The place of the lane that comes first in memory.
ExprEmitter::Place ExprEmitter::lowest(const Progression& row, int lanes) {
  return {row.first.base, row.first.constant - (row.stride < 0 ? lanes - 1 : 0)};
}

// One load for all that read an address before the buffer is stored to.
Value* ExprEmitter::load_at(const ir::BufferRef& buffer, llvm::Type* type, Value* address) {
  return known_.loaded(buffer, address, type, [&] {
    return tagged(b_.CreateAlignedLoad(type, address, alignment_of(buffer->type)),
                  place_of(buffer));
  });
}

Value* ExprEmitter::load_scalar(Value* address, const ir::Load& node, Value* mask) {
  const DType type = node.buffer->type;
  llvm::Type* const element = memory_type(b_.getContext(), type);
  if (mask == nullptr) return from_memory(load_at(node.buffer, element, address), type);
  Value* const loaded = when(mask, element, [&] {
    return tagged(b_.CreateAlignedLoad(element, address, alignment_of(type)),
                  place_of(node.buffer));
  });
  return from_memory(loaded, type);
}

Value* ExprEmitter::load_row(const BufferPlace& place, const Progression& row, const ir::Load& node,
                             Value* mask) {
  const DType type = node.buffer->type;
  const int lanes = node.type.lanes;
  if (row.stride == 0) {
    Value* const any = mask != nullptr ? any_lane(mask) : nullptr;
    return splat(load_scalar(element_address(place, type, row.first), node, any), lanes);
  }
  const bool backwards = row.stride < 0;
  Value* const address = element_address(place, type, lowest(row, lanes));
  llvm::Type* const vector =
      like(value_type(b_.getContext(), node.type), memory_type(b_.getContext(), type));
  Value* loaded = nullptr;
  if (mask == nullptr) {
    loaded = load_at(node.buffer, vector, address);
  } else {
    Value* const in_order = backwards ? reversed(b_, mask, lanes) : mask;
    loaded = masked_load(place, type, address, in_order);
  }
  return from_memory(backwards ? reversed(b_, loaded, lanes) : loaded, type);
}

// LLVM 19 divides masked accesses that are longer than a register itself, but then takes a part
// whose lanes are all known to be off for one whose lanes are all on: it reads what is not there.
Value* ExprEmitter::masked_load(const BufferPlace& place, DType type, Value* address, Value* mask) {
  llvm::Type* const element = memory_type(b_.getContext(), type);
  std::vector<Value*> parts;
  for_each_register(type, mask, [&](int first, Value* part) {
    llvm::Type* const vector = like(part->getType(), element);
    Value* const start = b_.CreateConstInBoundsGEP1_64(element, address, first);
    parts.push_back(tagged(b_.CreateMaskedLoad(vector, start, alignment_of(type), part,
                                               llvm::Constant::getNullValue(vector)),
                           place));
  });
  return llvm::concatenateVectors(b_, parts);
}

void ExprEmitter::masked_store(const BufferPlace& place, DType type, Value* value, Value* address,
                               Value* mask) {
  llvm::Type* const element = memory_type(b_.getContext(), type);
  for_each_register(type, mask, [&](int first, Value* part) {
    Value* const start = b_.CreateConstInBoundsGEP1_64(element, address, first);
    Value* const lanes = b_.CreateShuffleVector(value, lanes_from(first, lanes_of(part)));
    tagged(b_.CreateMaskedStore(lanes, start, alignment_of(type), part), place);
  });
}

void ExprEmitter::for_each_register(DType type, Value* mask,
                                    const std::function<void(int, Value*)>& visit) {
  const int lanes = lanes_of(mask);
  const int most = std::max(lane_access_.masked_bytes / static_cast<int>(size_of(type)), 1);
  for (int first = 0; first < lanes; first += most)
    visit(first, b_.CreateShuffleVector(mask, lanes_from(first, std::min(most, lanes - first))));
}

// LLVM makes a branch a lane of a masked access that the CPU has no instruction for.
bool ExprEmitter::has_masks(DType type) const {
  return size_of(type) >= 4 ? lane_access_.masks_words : lane_access_.masks_bytes;
}

// Allocated in the first block, as on_stack() does. Loads need one that holds 0, stores one that
// nobody reads.
Value* ExprEmitter::spare_place(bool is_zero) {
  Value*& place = is_zero ? zero_place_ : spare_place_;
  if (place == nullptr) {
    llvm::BasicBlock& entry = b_.GetInsertBlock()->getParent()->getEntryBlock();
    llvm::IRBuilder<> start(&entry, entry.begin());
    place = start.CreateAlloca(start.getInt64Ty());
    if (is_zero) start.CreateStore(start.getInt64(0), place);
  }
  return place;
}

std::vector<Value*> ExprEmitter::lane_addresses(const BufferPlace& place, DType type,
                                                const Expr& index, Value* mask, Value* spare) {
  const auto* ramp = ir::as<ir::Ramp>(index);
  Value* const base = emit(ramp != nullptr ? ramp->base : index, Use::Index);
  Value* const stride = ramp != nullptr ? emit(ramp->stride, Use::Index) : nullptr;
  std::vector<Value*> addresses;
  for (int lane = 0; lane < index->type.lanes; ++lane) {
    const auto number = static_cast<uint64_t>(lane);
    Value* const element = ramp != nullptr
                               ? b_.CreateAdd(base, b_.CreateMul(stride, b_.getInt64(number)))
                               : b_.CreateExtractElement(base, number);
    Value* address = lanes_addresses(place, type, element);
    if (mask != nullptr) {
      address = b_.CreateSelect(b_.CreateExtractElement(mask, number), address, spare);
    }
    addresses.push_back(address);
  }
  return addresses;
}

Value* ExprEmitter::load_lanes(const BufferPlace& place, const ir::Load& node, Value* mask) {
  const DType type = node.buffer->type;
  Value* const spare = mask != nullptr ? spare_place(/*is_zero=*/true) : nullptr;
  const std::vector<Value*> addresses = lane_addresses(place, type, node.indices[0], mask, spare);
  llvm::Type* const element = memory_type(b_.getContext(), type);
  Value* result = llvm::PoisonValue::get(like(value_type(b_.getContext(), node.type), element));
  for (size_t lane = 0; lane < addresses.size(); ++lane) {
    Value* const loaded =
        tagged(b_.CreateAlignedLoad(element, addresses[lane], alignment_of(type)), place);
    result = b_.CreateInsertElement(result, loaded, lane);
  }
  return from_memory(result, type);
}

void ExprEmitter::store_lanes(const BufferPlace& place, const ir::Store& node, Value* value,
                              Value* mask) {
  const DType type = node.buffer->type;
  Value* const spare = mask != nullptr ? spare_place(/*is_zero=*/false) : nullptr;
  const std::vector<Value*> addresses = lane_addresses(place, type, node.indices[0], mask, spare);
  for (size_t lane = 0; lane < addresses.size(); ++lane) {
    Value* const element = b_.CreateExtractElement(value, lane);
    tagged(b_.CreateAlignedStore(element, addresses[lane], alignment_of(type)), place);
  }
}

Value* ExprEmitter::address_of(const ir::BufferRef& buffer, const Expr& index) {
  return element_address(place_of(buffer), buffer->type, place_in(index));
}

void ExprEmitter::prefetch(const ir::Prefetch& node) {
  KILN_CHECK(node.indices.size() == 1);
  Value* const address = address_of(node.buffer, node.indices[0]);
  constexpr uint32_t kToRead = 0;
  const uint32_t locality = node.into == ir::FetchInto::L1 ? 3 : 2;  // T0 and T1 of x86
  constexpr uint32_t kData = 1;
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {address->getType()},
                     {address, b_.getInt32(kToRead), b_.getInt32(locality), b_.getInt32(kData)});
}

/// Elements side by side. Non-temporal where that is asked for and the place is aligned; the end of
/// a row too, since a line of which a part is in a cache must be evicted first.
void ExprEmitter::store_row(const BufferPlace& place, DType type, Value* value, Value* address) {
  constexpr uint64_t kAlignment = 32;  // bytes; LLVM splits a vector of 64 that is aligned to 32
  const auto plain = [&] {
    tagged(b_.CreateAlignedStore(value, address, alignment_of(type)), place);
  };
  const uint64_t bits = value->getType()->getPrimitiveSizeInBits().getFixedValue();
  if (place.is_large == nullptr || bits % (8 * kAlignment) != 0) return plain();
  has_nontemporal_stores_ = true;
  llvm::Function* const function = b_.GetInsertBlock()->getParent();
  auto* const nontemporal = llvm::BasicBlock::Create(b_.getContext(), "nontemporal", function);
  auto* const cached = llvm::BasicBlock::Create(b_.getContext(), "cached", function);
  auto* const end = llvm::BasicBlock::Create(b_.getContext(), "stored", function);
  Value* const rest = b_.CreateAnd(b_.CreatePtrToInt(address, b_.getInt64Ty()), kAlignment - 1);
  Value* const is_aligned = b_.CreateICmpEQ(rest, b_.getInt64(0));
  b_.CreateCondBr(b_.CreateAnd(is_aligned, place.is_large), nontemporal, cached);
  b_.SetInsertPoint(nontemporal);
  llvm::StoreInst* const store =
      tagged(b_.CreateAlignedStore(value, address, llvm::Align(kAlignment)), place);
  llvm::Metadata* const one = llvm::ConstantAsMetadata::get(b_.getInt32(1));
  store->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(b_.getContext(), one));
  b_.CreateBr(end);
  b_.SetInsertPoint(cached);
  plain();
  b_.CreateBr(end);
  b_.SetInsertPoint(end);
}

// Non-temporal stores are not ordered with others; whoever is told that the call is done must see
// them.
void ExprEmitter::fence() {
  if (has_nontemporal_stores_) b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
}

// The value first: it may load what the store overwrites.
void ExprEmitter::store(const ir::Store& node) {
  KILN_CHECK(node.indices.size() == 1);
  const Expr& index = node.indices[0];
  const BufferPlace place = place_of(node.buffer);
  const DType type = node.buffer->type;
  const int lanes = node.value->type.lanes;
  Value* const value = to_memory(emit(node.value, Use::Data), type);
  Value* const mask = active_mask(node.predicate, lanes);
  known_.forget_loads(node.buffer);
  if (lanes == 1) {
    Value* const address = element_address(place, type, place_in(index));
    when(mask, nullptr, [&]() -> Value* {
      return tagged(b_.CreateAlignedStore(value, address, alignment_of(type)), place);
    });
    return;
  }
  const std::optional<Progression> row = progression(index);
  const bool is_row = row && (row->stride == 1 || row->stride == -1);
  if (is_row && (mask == nullptr || has_masks(type))) {
    const bool backwards = row->stride < 0;
    Value* const address = element_address(place, type, lowest(*row, lanes));
    Value* const in_order = backwards ? reversed(b_, value, lanes) : value;
    if (mask == nullptr) {
      store_row(place, type, in_order, address);
    } else {
      masked_store(place, type, in_order, address, backwards ? reversed(b_, mask, lanes) : mask);
    }
    return;
  }
  Value* const addresses = addresses_at(place, type, index, row);
  Value* const all = llvm::Constant::getAllOnesValue(like(value->getType(), b_.getInt1Ty()));
  tagged(b_.CreateMaskedScatter(value, addresses, alignment_of(type), mask != nullptr ? mask : all),
         place);
}

}  // namespace kiln::codegen
