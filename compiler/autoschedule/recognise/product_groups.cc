// Decides which sums of narrow products are added in groups by one instruction, and along which
// axis: one whose neighbours the row factor has side by side, so that it stays where it is, or else
// the longest, and both factors are copied.
//
//   sum[k](int32(A[i, k]) * int32(B[k, j])), int8, on a CPU with VNNI  ->  4 products, along k
//   on another one  ->  2 products, as int16
//   sum[c, r, s](float32(X[c, y + r, x + s]) * float32(W[f, c, r, s])), bfloat16
//     ->  2 products, along c, or where patches are laid out, along all of c, r and s
#include "compiler/autoschedule/recognise/product_groups.h"

#include <algorithm>

#include "compiler/ir/build.h"
#include "compiler/ir/short_integers.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {
namespace {

using language::Operator;

// Fewer columns leave most lanes of a vector empty.
constexpr int64_t kLeastColumns = 16;
// A tile takes as long with fewer, but many steps at once.
constexpr int64_t kLeastColumnsOfTiles = 4;
// Fewer groups are hardly a loop.
constexpr int64_t kLeastGroups = 4;
// Products of int32 take two instructions for each, and one that widens a column; in pairs two for
// two, and about twelve for 32 elements that are copied. Both are the same for two rows, but the
// copy is written and read again.
constexpr int64_t kLeastRowsOfWords = 4;

/// The type of what is read by a factor that is converted to the type of the sum at once.
std::optional<DType> converted_from(const StageGraph& graph, const ir::Expr& factor, DType sum) {
  const auto* cast = ir::as<ir::Cast>(factor);
  const auto* read = cast != nullptr ? ir::as<ir::TensorRead>(cast->value) : nullptr;
  if (read == nullptr || cast->type.element != sum) return std::nullopt;
  return graph[read->stage].types[read->output];
}

/// How many, and whether signs are turned.
ProductGroup products_at_once(const Chooser& chooser, StageId id) {
  const Stage& stage = chooser.graph[id];
  const auto* reduce = ir::as<ir::Reduce>(stage.bodies[0]);
  const auto* product = ir::as<ir::Binary>(reduce->sources[0]);
  if (product == nullptr || product->op != Operator::Mul) return {};
  const DType sum = stage.types[0];
  const std::optional<DType> a = converted_from(chooser.graph, product->a, sum);
  const std::optional<DType> b = converted_from(chooser.graph, product->b, sum);
  if (!a || !b) return {};
  if (ir::is_word(*a) && ir::is_word(*b) && sum == DType::Int32) {
    const bool adds_bytes =
        chooser.machine.vectors.adds_bytes && ir::is_byte(*a) && ir::is_byte(*b);
    const bool in_tiles = chooser.machine.vectors.multiplies_tiles_of_bytes;
    if (adds_bytes) return {.products = 4, .turns_signs = *a == *b, .in_tiles = in_tiles};
    return {.products = 2, .adds_words = true};  // every x86-64 has that
  }
  if (*a != *b || sum != DType::Float32 || chooser.options.strict) return {};
  const ir::VectorUnit& vectors = chooser.machine.vectors;
  if (*a == DType::BFloat16 && vectors.adds_halves)
    return {.products = 2, .in_tiles = vectors.multiplies_tiles_of_halves};
  if (*a == DType::Float16 && vectors.multiplies_tiles_of_float16)
    return {.products = 2, .in_tiles = true, .in_tiles_alone = true};
  return {};
}

/// Whether there are rows for tiles, and all steps are known.
bool are_tiles(const StageGraph& graph, StageId id, const Contraction& found) {
  return constant_extent(graph, found.row).value_or(0) > 1 &&
         std::ranges::all_of(graph[id].reduce,
                             [&](AxisId axis) { return constant_extent(graph, axis).has_value(); });
}

/// Whether both factors may be copied for a product, each by itself.
bool may_copy(const StageGraph& graph, StageId id, const Contraction& found) {
  const StageId rows = found.row_factor->stage;
  const StageId panel = found.column_factor->stage;
  return rows != panel && graph[id].role.cell_of < 0 && graph[panel].role.cell_of < 0 &&
         graph[rows].role.cell_of < 0 && !graph[id].part_of;
}

bool has_rows_for(const StageGraph& graph, const ProductGroup& kind, const Contraction& found) {
  return !kind.adds_words ||
         constant_extent(graph, found.row).value_or(kLeastRowsOfWords) >= kLeastRowsOfWords;
}

}  // namespace

ProductGroup product_group_of(const Chooser& chooser, StageId id, const Contraction& found) {
  const StageGraph& graph = chooser.graph;
  ProductGroup best;
  const ProductGroup kind = products_at_once(chooser, id);
  const int64_t products = kind.products;
  const int64_t columns = constant_extent(graph, found.column).value_or(0);
  const int64_t least = kind.in_tiles ? kLeastColumnsOfTiles : kLeastColumns;
  if (products == 1 || columns < least || !may_copy(graph, id, found) ||
      !has_rows_for(graph, kind, found))
    return {};
  int64_t longest = 0;
  for (const AxisId axis : graph[id].reduce) {
    const int64_t extent = constant_extent(graph, axis).value_or(0);
    if (extent < kLeastGroups * products || !is_used_in(graph, *found.row_factor, axis) ||
        !is_used_in(graph, *found.column_factor, axis)) {
      continue;
    }
    const bool lies_together = distance_along(graph, *found.row_factor, axis) == 1;
    if (!lies_together && extent <= longest) continue;
    longest = extent;
    best = kind;
    best.axis = axis;
    best.copies_rows = !lies_together || kind.adds_words;
    if (lies_together) break;
  }
  best.in_tiles = best.in_tiles && are_tiles(graph, id, found);
  return best.in_tiles || !best.in_tiles_alone ? best : ProductGroup{};
}

ProductGroup patch_group_of(const Chooser& chooser, StageId id, const Contraction& found) {
  const StageGraph& graph = chooser.graph;
  ProductGroup kind = products_at_once(chooser, id);
  if (kind.products == 1 || kind.in_tiles_alone || !may_copy(graph, id, found) ||
      !has_rows_for(graph, kind, found))
    return {};
  int64_t steps = 1;
  const std::vector<AxisId>& reduce = graph[id].reduce;
  for (auto axis = reduce.rbegin(); axis != reduce.rend(); ++axis) {
    const int64_t extent = constant_extent(graph, *axis).value_or(0);
    if (extent < 1 || distance_along(graph, *found.row_factor, *axis) != steps) return {};
    if (__builtin_mul_overflow(steps, extent, &steps)) return {};
  }
  if (steps % kind.products != 0 || steps < kLeastGroups * kind.products) return {};
  kind.axis = reduce.back();
  kind.copies_rows = kind.adds_words;
  kind.in_tiles = false;
  return kind;
}

}  // namespace kiln::autoschedule
