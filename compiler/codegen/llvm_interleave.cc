// Moves what lies a few elements apart by whole vectors and shuffles: scatters and gathers take an
// instruction a lane, and of bytes there are none. Packed panels are made of such stores.
//
//   P[ramp(0, 4, 16)] = A[ramp(0, 1, 16)] .. P[ramp(3, 4, 16)] = D[ramp(0, 1, 16)]
//     ->
//   one store of 64 neighbours: A[0] B[0] C[0] D[0] A[1] ..
//
// The order of the shuffles is the one that LLVM's pass for interleaved accesses knows.
#include <numeric>

#include "compiler/codegen/llvm_expr.h"
#include "compiler/codegen/llvm_values.h"
#include "compiler/ir/mutator.h"
#include "runtime/core/error.h"

namespace kiln::codegen {

using ir::as;
using ir::Expr;
using llvm::Value;

namespace {

/// Two vectors of one length, one behind the other.
Value* concatenated(llvm::IRBuilderBase& b, Value* first, Value* second) {
  auto* const type = llvm::cast<llvm::FixedVectorType>(first->getType());
  std::vector<int> places(2 * type->getNumElements());
  std::iota(places.begin(), places.end(), 0);
  return b.CreateShuffleVector(first, second, places);
}

class ReadsBuffer : public ir::Visitor {
 public:
  explicit ReadsBuffer(const ir::BufferRef& buffer) : buffer_(buffer) {}
  bool found = false;

 private:
  using Visitor::visit;
  void visit(const ir::Load& load) override {
    found = found || load.buffer == buffer_;
    Visitor::visit(load);
  }
  const ir::BufferRef& buffer_;
};

/// An unmasked store of lanes that lie two or four elements from each other: `apart`. Null for any
/// other statement.
const ir::Store* strided_store(const ir::Stmt& stmt, size_t& apart) {
  const auto* store = as<ir::Store>(stmt);
  const auto* row = store != nullptr && !store->predicate && store->indices.size() == 1
                        ? as<ir::Ramp>(store->indices[0])
                        : nullptr;
  const auto* stride = row != nullptr ? as<ir::IntImm>(row->stride) : nullptr;
  const bool is_few = stride != nullptr && (stride->value == 2 || stride->value == 4);
  if (!is_few) return nullptr;
  apart = static_cast<size_t>(stride->value);
  return store;
}

}  // namespace

// What the first of them stores must not be what a later one reads.
size_t ExprEmitter::store_together(std::span<const ir::Stmt> statements) {
  forget();  // what the statement before has computed
  size_t apart = 0;
  const ir::Store* const first = strided_store(statements[0], apart);
  if (first == nullptr || mask_ != nullptr || statements.size() < apart) return 0;
  const auto group = statements.first(apart);
  const Place start = place_in(as<ir::Ramp>(first->indices[0])->base);
  for (size_t i = 0; i < apart; ++i) {
    size_t distance = 0;
    const ir::Store* const store = strided_store(group[i], distance);
    if (store == nullptr || distance != apart || !(store->buffer == first->buffer) ||
        store->value->type != first->value->type) {
      return 0;
    }
    ReadsBuffer reads(first->buffer);
    reads(store->value);
    const Place place = place_in(as<ir::Ramp>(store->indices[0])->base);
    const bool is_next =
        place.base == start.base && place.constant == start.constant + static_cast<int64_t>(i);
    if (reads.found || !is_next) return 0;
  }
  const DType type = first->buffer->type;
  std::vector<Value*> rows;
  for (const ir::Stmt& stmt : group)
    rows.push_back(to_memory(emit(as<ir::Store>(stmt)->value, Use::Data), type));
  const int lanes = first->value->type.lanes;
  std::vector<int> places;
  for (int lane = 0; lane < lanes; ++lane) {
    for (int i = 0; i < static_cast<int>(apart); ++i)
      places.push_back(i * lanes + lane);
  }
  Value* low = rows[0];
  Value* high = rows[1];
  if (apart == 4) {
    low = concatenated(b_, rows[0], rows[1]);
    high = concatenated(b_, rows[2], rows[3]);
  }
  Value* const all = b_.CreateShuffleVector(low, high, places);
  known_.forget_loads(first->buffer);
  const BufferPlace place = place_of(first->buffer);
  store_row(place, type, all, element_address(place, type, start));
  return apart;
}

/// Rows that end with the last element, the last of which overlaps the one before it: as many as
/// elements are apart.
Value* ExprEmitter::load_apart(const BufferPlace& place, const Place& first, int64_t apart,
                               const ir::Load& node) {
  const DType type = node.buffer->type;
  const int lanes = node.type.lanes;
  llvm::Type* const vector =
      like(value_type(b_.getContext(), node.type), memory_type(b_.getContext(), type));
  const auto count = static_cast<int>(apart);
  const int last = (count - 1) * (lanes - 1);  // where the last row begins
  std::vector<Value*> rows;
  for (int i = 0; i < count; ++i) {
    const Place at{first.base, first.constant + (i + 1 < count ? i * lanes : last)};
    rows.push_back(load_at(node.buffer, vector, element_address(place, type, at)));
  }
  if (count == 3) rows.push_back(llvm::PoisonValue::get(vector));
  std::vector<int> order;
  for (int lane = 0; lane < lanes; ++lane) {
    const int element = lane * count;
    const int row = std::min(element / lanes, count - 1);
    order.push_back(row * lanes + element - (row + 1 < count ? row * lanes : last));
  }
  if (count == 2) return from_memory(b_.CreateShuffleVector(rows[0], rows[1], order), type);
  Value* const low = concatenated(b_, rows[0], rows[1]);
  Value* const high = concatenated(b_, rows[2], rows[3]);
  return from_memory(b_.CreateShuffleVector(low, high, order), type);
}

}  // namespace kiln::codegen
