// Finds sums of products that a matrix unit adds a tile at a time, by their loops: steps of the
// sum, then rows, columns and a group of steps that lie side by side. Automatic schedules write
// such loops; a schedule of the user's own gets the same.
//
// Of the instructions see Intel's Software Developer's Manual, TDPBSSD, TDPBF16PS and TDPFP16PS: a
// row of a factor's tile is 16 groups of 4 bytes, and of the other factor's tile 16 columns of one
// group.
#include "compiler/analysis/tile_product.h"

#include <algorithm>
#include <span>

#include "compiler/analysis/multiply_add.h"
#include "compiler/ir/build.h"
#include "compiler/ir/mutator.h"
#include "compiler/ir/short_integers.h"

namespace kiln::analysis {
namespace {

using namespace ir;

/// The steps that one element of a tile is; 0 where no instruction multiplies these types.
int64_t group_of(DType a, DType b, DType sum) {
  if (sum == DType::Int32) return is_byte(a) && is_byte(b) ? 4 : 0;
  const bool is_half = a == DType::BFloat16 || a == DType::Float16;
  return sum == DType::Float32 && is_half && a == b ? 2 : 0;
}

/// The loops of a nest down to its store, outermost first; empty where there is anything else.
std::vector<const For*> loops_to_store(const For& outermost) {
  std::vector<const For*> loops;
  for (const auto* at = &outermost; at != nullptr; at = as<For>(at->body)) {
    if (at->loop_kind == LoopKind::Parallel || at->loop_kind == LoopKind::ThreadIndex ||
        as_const_int(at->extent).value_or(0) <= 0) {
      return {};
    }
    loops.push_back(at);
  }
  const auto* store = as<Store>(loops.back()->body);
  return store == nullptr || store->predicate ? std::vector<const For*>() : loops;
}

template <typename Access>
bool is_apart(const Access& access, const For& loop, int64_t elements) {
  return distance(access.buffer, access.indices, loop.var) == elements;
}

}  // namespace

int64_t groups_at_once(int64_t groups) {
  constexpr int64_t kFewest = 12;
  for (int64_t each = std::min(groups, kTileGroups); each >= kFewest; --each)
    if (groups % each == 0) return each;
  return std::min(groups, kTileGroups);
}

bool tiles_have_room(int64_t rows, int64_t columns, int64_t groups) {
  const int64_t a = tiles_along(rows);
  const int64_t b = tiles_along(columns);
  if (rows < 2 || columns < 2) return false;
  if (groups % groups_at_once(groups) == 0) return a * b + a + b <= kTiles;
  const bool are_alike =
      (a == 1 || rows % kTileRows == 0) && (b == 1 || columns % kTileColumns == 0);
  return are_alike && a * b + 4 <= kTiles;
}

double cycles_of_step(int64_t rows, int64_t columns) {
  constexpr double kLeast = 9.3;
  double cycles = 0;
  for (int64_t row = 0; row < rows; row += kTileRows)
    cycles += std::max(kLeast, static_cast<double>(std::min(kTileRows, rows - row)));
  return cycles * static_cast<double>(tiles_along(columns));
}

std::optional<TileProduct> tile_product(const For& loop) {
  const std::vector<const For*> loops = loops_to_store(loop);
  if (loops.size() < 4) return std::nullopt;
  TileProduct found;
  found.group = loops.back();
  found.columns = loops[loops.size() - 2];
  found.rows = loops[loops.size() - 3];
  found.sums = as<Store>(found.group->body);
  const DType sum = found.sums->buffer->type;
  std::optional<MultiplyAdd> product = multiply_add_of(*found.sums);
  if (!product || !is_converted(product->x, sum) || !is_converted(product->y, sum)) {
    return std::nullopt;
  }
  if (uses_var(product->x, found.columns->var)) std::swap(product->x, product->y);
  found.a = load_in(product->x);
  found.b = load_in(product->y);
  if (found.a == nullptr || found.b == nullptr || found.a->buffer == found.sums->buffer ||
      found.b->buffer == found.sums->buffer) {
    return std::nullopt;
  }
  found.group_size = *as_const_int(found.group->extent);
  found.row_count = *as_const_int(found.rows->extent);
  found.column_count = *as_const_int(found.columns->extent);
  const Store& sums = *found.sums;
  const std::optional<int64_t> sums_row = distance(sums.buffer, sums.indices, found.rows->var);
  const std::optional<int64_t> a_row = distance(found.a->buffer, found.a->indices, found.rows->var);
  if (found.group_size != group_of(found.a->buffer->type, found.b->buffer->type, sum) ||
      sums_row.value_or(0) == 0 || !a_row || !is_apart(sums, *found.columns, 1) ||
      !is_apart(sums, *found.group, 0) || !is_apart(*found.a, *found.columns, 0) ||
      !is_apart(*found.a, *found.group, 1) || !is_apart(*found.b, *found.rows, 0) ||
      !is_apart(*found.b, *found.columns, found.group_size) ||
      !is_apart(*found.b, *found.group, 1)) {
    return std::nullopt;
  }
  found.sums_row = *sums_row;
  found.a_row = *a_row;
  for (const For* step : std::span(loops).first(loops.size() - 3)) {
    const auto a = distance(found.a->buffer, found.a->indices, step->var);
    const auto b = distance(found.b->buffer, found.b->indices, step->var);
    if (!is_apart(sums, *step, 0) || !a || !b) return std::nullopt;
    found.steps.push_back({step, *as_const_int(step->extent), *a, *b});
  }
  const bool has_room =
      tiles_have_room(found.row_count, found.column_count, found.steps.back().extent);
  if (!has_room || found.steps.back().a != found.group_size) return std::nullopt;
  return found;
}

std::optional<TileProduct> tile_product(const MultiplyTiles& node) {
  // A loop that sets the sums to zero stands before it.
  const auto* block = as<Block>(node.body);
  const auto* loop = as<For>(block != nullptr ? block->body.back() : node.body);
  std::optional<TileProduct> found = loop != nullptr ? tile_product(*loop) : std::nullopt;
  if (found) found->begins_with_zero = block != nullptr;
  return found;
}

}  // namespace kiln::analysis
