// Distances of points to other points, with a vector of the others:
//
//   D[i, j] = sum[k]((X[i, k] - Y[j, k]) * (X[i, k] - Y[j, k])), 2000 x 1000 of 16
//     ->  Y transposed to panels; 8 x 48 sums, to which each step adds those of 8 rows
//
// Nothing is added up along a vector, so that it does not matter how short rows are. us on one core
// of a Golden Cove: one pair at a time or 5 x 2 of them in vectors along k (paired_rows.cc), and
// so:
//
//   500 x 500 of 128       877, 571
//   1000 x 100 of 64       238, 123
//   2000 x 1000 of 16     3322, 591
//   2000 x 2000 of 3      1810, 570
#include "compiler/autoschedule/templates/paired_columns.h"

#include <algorithm>

#include "compiler/autoschedule/templates/contraction_loops.h"
#include "compiler/autoschedule/templates/contraction_numbers.h"
#include "compiler/autoschedule/templates/element_work.h"
#include "compiler/autoschedule/templates/pairs.h"
#include "compiler/autoschedule/templates/stage_cycles.h"
#include "compiler/schedule/graph/places_of_tensor.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {
namespace {

// Of less columns, more of a vector is empty than rows as lanes leave: rows_as_lanes.cc.
constexpr int64_t kLeastColumns = 4;

/// What computes a tile: the terms of a pair, and vectors of columns that are gathered.
struct PairWork {
  double sum = 0;
  double gathered = 0;
};

double one_tile(const ContractionSize& size, int64_t rows, int64_t columns, const PairWork& work) {
  if (rows == 0 || columns == 0) return 0;
  const auto vectors = static_cast<double>(ceil_div(columns, size.register_lanes));
  const double sums = static_cast<double>(rows) * vectors;
  const double loads = (static_cast<double>(rows) + vectors) / size.loads;
  const double step = std::max({work.sum * sums, loads, size.latency}) + size.loop_cycles;
  return static_cast<double>(size.steps) * (step + work.gathered * vectors) + size.tile_cycles +
         size.element_cycles * sums;
}

double all_tiles(const ContractionSize& size, const TileShape& tile, const PairWork& work) {
  return sum_of_tiles(size, tile.rows, tile.lanes, [&](int64_t rows, int64_t columns) {
    return one_tile(size, rows, columns, work);
  });
}

TileShape best_tile(const ContractionSize& size, const PairWork& work) {
  const std::vector<TileShape> shapes = tile_shapes(size);
  return *std::ranges::min_element(
      shapes, {}, [&](const TileShape& tile) { return all_tiles(size, tile, work); });
}

/// What is read along an axis; null where that is more than one element.
const ir::TensorRead* factor_along(const StageGraph& graph, const Pairs& pairs, AxisId axis) {
  const ir::TensorRead* factor = nullptr;
  for (const ir::TensorRead* read : pairs.work.reads) {
    if (!is_used_in(graph, *read, axis)) continue;
    if (factor != nullptr) return nullptr;
    factor = read;
  }
  return factor;
}

/// Whether the columns can be copied for the tiles alone: rows that are of the same tensor could
/// not be read from the copy.
bool may_be_copied(const StageGraph& graph, StageId id, const Tiling& tiling) {
  const ir::TensorRead& columns = *tiling.contraction.column_factor;
  return graph[columns.stage].attach.kind == schedule::Attach::Kind::Root &&
         schedule::places_of_tensor(graph, id, tiling.panel).is_one() &&
         only_reorders(graph, columns,
                       joined({tiling.panel_batch, tiling.reduce, {tiling.contraction.column}}));
}

}  // namespace

std::optional<PairSketch> paired_columns_sketch(const Chooser& chooser, StageId id,
                                                const Pairs& pairs, bool may_be_parallel) {
  const StageGraph& graph = chooser.graph;
  const Contraction contraction{.row = pairs.row,
                                .column = pairs.column,
                                .row_factor = factor_along(graph, pairs, pairs.row),
                                .column_factor = factor_along(graph, pairs, pairs.column)};
  if (contraction.row_factor == nullptr || contraction.column_factor == nullptr ||
      pairs.size.columns < kLeastColumns)
    return std::nullopt;
  const Tiling tiling = tiling_of(chooser, id, contraction);
  const bool are_together = is_contiguous_in(graph, *contraction.column_factor, pairs.column);
  const bool in_place = are_together || !may_be_copied(graph, id, tiling);

  const Machine& machine = chooser.machine;
  ContractionSize size = pairs.size;
  // What is computed of a pair has to lie somewhere before it is added.
  ++size.term_registers;
  const auto lanes = static_cast<double>(size.register_lanes);
  const double apart = are_together ? 0 : machine.gathered_cycles;
  const PairWork work{.sum = pairs.busy, .gathered = in_place ? lanes * apart : 0};
  const TileShape tile = best_tile(size, work);
  const double copy =
      in_place ? 0 : static_cast<double>(size.steps * size.columns) * apart + machine.handed_cycles;
  const bool parallel = may_be_parallel && is_worth_sharing(chooser, id);
  return PairSketch{.sketch = {.name = "pairs of rows and columns",
                               .parameters = {rows_parameter(graph, pairs.row, tile.rows),
                                              columns_parameter(graph, pairs.column,
                                                                size.register_lanes, tile.lanes),
                                              parallel_parameter(parallel)},
                               .write =
                                   [&graph, tiling, in_place, bodies = pairs.bodies](
                                       StepWriter& steps, const Values& values) {
                                     (in_place ? write_outer_products : write_panels_in_order)(
                                         graph, tiling, steps, values);
                                   }},
                    .cycles = all_tiles(size, tile, work) + copy};
}

}  // namespace kiln::autoschedule
