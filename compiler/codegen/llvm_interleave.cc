// Moves what lies a few elements apart by whole vectors and shuffles: scatters and gathers take an
// instruction a lane, and of bytes there are none. Packed panels are made of such stores.
//
//   P[ramp(0, 4, 16)] = A[ramp(0, 1, 16)] .. P[ramp(3, 4, 16)] = D[ramp(0, 1, 16)]
//     ->
//   one store of 64 neighbours: A[0] B[0] C[0] D[0] A[1] ..
//
// As many stores as they have lanes, which lie further apart, are a square that is transposed in
// registers, and stored row by row.
//
//   P[ramp(0, 32, 16)] = A[ramp(0, 1, 16)] .. P[ramp(15, 32, 16)] = R[ramp(0, 1, 16)]
//     ->
//   P[ramp(0, 1, 16)] = A[0] B[0] .. R[0]; P[ramp(32, 1, 16)] = A[1] B[1] .. R[1]; ..
//
// The order of the shuffles of two and four is the one that LLVM's pass for interleaved accesses
// knows; a square is turned by perfect shuffles of its halves, one for each bit of a lane's number
// (Stone, Parallel Processing with the Perfect Shuffle, 1971), in parts of 128 bits.
#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "compiler/codegen/llvm_expr.h"
#include "compiler/codegen/llvm_values.h"
#include "compiler/ir/mutator.h"
#include "runtime/core/error.h"

namespace kiln::codegen {

using ir::as;
using ir::Expr;
using llvm::Value;

namespace {

// Of a register: shuffles within one are an instruction, all others of x86 with AVX2 are two.
constexpr int kPartBytes = 16;

/// Two vectors of one length, one behind the other.
Value* concatenated(llvm::IRBuilderBase& b, Value* first, Value* second) {
  auto* const type = llvm::cast<llvm::FixedVectorType>(first->getType());
  std::vector<int> places(2 * type->getNumElements());
  std::iota(places.begin(), places.end(), 0);
  return b.CreateShuffleVector(first, second, places);
}

/// Of elements `apart` apart, one for each lane of the mask, the row that begins so many elements
/// after the first: it has those of the lanes that are on, and nothing between them.
Value* mask_of_row(llvm::IRBuilderBase& b, Value* mask, int start, int apart) {
  const auto lanes =
      static_cast<int>(llvm::cast<llvm::FixedVectorType>(mask->getType())->getNumElements());
  std::vector<int> order;
  for (int element = start; element < start + lanes; ++element)
    order.push_back(element % apart == 0 ? element / apart : lanes);
  return b.CreateShuffleVector(mask, llvm::Constant::getNullValue(mask->getType()), order);
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

/// An unmasked store of lanes that lie `apart` elements from each other, more than one. Null for
/// any other statement.
const ir::Store* strided_store(const ir::Stmt& stmt, int64_t& apart) {
  const auto* store = as<ir::Store>(stmt);
  const auto* row = store != nullptr && !store->predicate && store->indices.size() == 1
                        ? as<ir::Ramp>(store->indices[0])
                        : nullptr;
  const auto* stride = row != nullptr ? as<ir::IntImm>(row->stride) : nullptr;
  if (stride == nullptr || stride->value < 2) return nullptr;
  apart = stride->value;
  return store;
}

/// How many stores after each other fill what lies between their lanes, or make a square of
/// registers; 0: none do.
size_t group_of(int64_t apart, int lanes) {
  if (apart == 2 || apart == 4) return static_cast<size_t>(apart);
  const bool is_square = lanes == 4 || lanes == 8 || lanes == 16;
  return is_square && apart >= lanes ? static_cast<size_t>(lanes) : 0;
}

/// The lanes of two rows by turns, each `part` of them by itself: first the lower halves of the
/// parts, then the upper ones.
std::pair<Value*, Value*> zipped(llvm::IRBuilderBase& b, Value* first, Value* second, int lanes,
                                 int part) {
  std::vector<int> low;
  std::vector<int> high;
  for (int i = 0; i < lanes; ++i) {
    low.push_back(i / part * part + i % part / 2 + i % 2 * lanes);
    high.push_back(low.back() + part / 2);
  }
  return {b.CreateShuffleVector(first, second, low), b.CreateShuffleVector(first, second, high)};
}

/// Every other part of two rows: the even ones, and the odd ones.
std::pair<Value*, Value*> unzipped(llvm::IRBuilderBase& b, Value* first, Value* second, int lanes,
                                   int part) {
  std::vector<int> even;
  std::vector<int> odd;
  for (int i = 0; i < lanes; ++i) {
    even.push_back(i / part * 2 * part + i % part);
    odd.push_back(even.back() + part);
  }
  return {b.CreateShuffleVector(first, second, even), b.CreateShuffleVector(first, second, odd)};
}

/// Lane i of row j becomes lane j of row i. Each pass over the rows of a part moves the first bit
/// of an element's place, the bits of its row and then those of its lane in the part, behind all
/// others; then the parts are turned, the other way round.
std::vector<Value*> turned(llvm::IRBuilderBase& b, std::vector<Value*> rows, int bytes) {
  const size_t count = rows.size();
  const size_t part = std::min(count, static_cast<size_t>(kPartBytes / bytes));
  const auto lanes = static_cast<int>(count);
  const auto lanes_of_part = static_cast<int>(part);
  std::vector<Value*> next(count);
  for (size_t pass = 1; pass < part; pass *= 2) {
    for (size_t i = 0; i < count / 2; ++i) {
      const size_t first = i / (part / 2) * part + i % (part / 2);
      std::tie(next[2 * i], next[2 * i + 1]) =
          zipped(b, rows[first], rows[first + part / 2], lanes, lanes_of_part);
    }
    rows.swap(next);
  }
  for (size_t pass = part; pass < count; pass *= 2) {
    for (size_t i = 0; i < count / 2; ++i) {
      const size_t first = i / part * 2 * part + i % part;
      std::tie(next[i], next[i + count / 2]) =
          unzipped(b, rows[first], rows[first + part], lanes, lanes_of_part);
    }
    rows.swap(next);
  }
  return rows;
}

/// Rows of which one has the lanes that lie next to each other, from two or four of them.
Value* interleaved(llvm::IRBuilderBase& b, const std::vector<Value*>& rows, int lanes) {
  const auto apart = static_cast<int>(rows.size());
  std::vector<int> places;
  for (int lane = 0; lane < lanes; ++lane) {
    for (int i = 0; i < apart; ++i)
      places.push_back(i * lanes + lane);
  }
  if (apart == 2) return b.CreateShuffleVector(rows[0], rows[1], places);
  Value* const low = concatenated(b, rows[0], rows[1]);
  Value* const high = concatenated(b, rows[2], rows[3]);
  return b.CreateShuffleVector(low, high, places);
}

}  // namespace

// What the first of them stores must not be what a later one reads.
size_t ExprEmitter::store_together(std::span<const ir::Stmt> statements) {
  forget();  // what the statement before has computed
  int64_t apart = 0;
  const ir::Store* const first = strided_store(statements[0], apart);
  if (first == nullptr || mask_ != nullptr) return 0;
  const int lanes = first->value->type.lanes;
  const size_t count = group_of(apart, lanes);
  if (count == 0 || statements.size() < count) return 0;
  const auto group = statements.first(count);
  const Place start = place_in(as<ir::Ramp>(first->indices[0])->base);
  for (size_t i = 0; i < count; ++i) {
    int64_t distance = 0;
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
  std::vector<Value*> stored;
  if (apart == 2 || apart == 4) {
    stored.push_back(interleaved(b_, rows, lanes));
  } else {
    stored = turned(b_, std::move(rows), size_of(type));
  }
  known_.forget_loads(first->buffer);
  const BufferPlace place = place_of(first->buffer);
  for (size_t i = 0; i < stored.size(); ++i) {
    const Place at{start.base, start.constant + static_cast<int64_t>(i) * apart};
    store_row(place, type, stored[i], element_address(place, type, at));
  }
  return count;
}

/// Rows that end with the last element, the last of which overlaps the one before it: as many as
/// elements are apart.
Value* ExprEmitter::load_apart(const BufferPlace& place, const Place& first, int64_t apart,
                               const ir::Load& node, Value* mask) {
  const DType type = node.buffer->type;
  const int lanes = node.type.lanes;
  llvm::Type* const vector =
      like(value_type(b_.getContext(), node.type), memory_type(b_.getContext(), type));
  const auto count = static_cast<int>(apart);
  const int last = (count - 1) * (lanes - 1);  // where the last row begins
  std::vector<Value*> rows;
  for (int i = 0; i < count; ++i) {
    const int start = i + 1 < count ? i * lanes : last;
    Value* const address = element_address(place, type, Place{first.base, first.constant + start});
    rows.push_back(mask == nullptr
                       ? load_at(node.buffer, vector, address)
                       : masked_load(place, type, address, mask_of_row(b_, mask, start, count)));
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
