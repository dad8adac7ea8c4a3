#include <algorithm>

#include "compiler/autoschedule/stage_schedules.h"

namespace kiln::autoschedule {
namespace {

constexpr int64_t kTileRows = 8;
constexpr int64_t kDotRows = 4;
constexpr int64_t kLine = 16;  // elements of a line of the cache
// With fewer rows the copy would take longer than it saves.
constexpr int64_t kRowsForCopy = 32;
// Column factors of fewer elements stay in the second cache as they are.
constexpr int64_t kLargePanels = 256 * 1024;
// From so many rows on, blocks of them read a panel again while it is in the second cache.
constexpr int64_t kRowsForBlocks = 2048;
constexpr int64_t kTilesOfBlock = 16;

/// The loops of a tiled contraction, the same for all sketches of it.
struct Tiling {
  StageId stage = 0;
  Contraction contraction;
  std::vector<AxisId> batch;  // data axes that are neither row nor column
  std::vector<AxisId> reduce;
  std::vector<AxisId> panel_batch;  // those of them that the column factor depends on
  language::TensorId panel;         // the column factor
  size_t panel_dimensions = 0;
};

Tiling tiling_of(const StageGraph& graph, StageId id, const Contraction& contraction) {
  Tiling tiling{.stage = id,
                .contraction = contraction,
                .batch = {},
                .reduce = graph[id].reduce,
                .panel_batch = {}};
  for (const AxisId axis : columns_of(graph[id])) {
    if (axis == contraction.row || axis == contraction.column) continue;
    tiling.batch.push_back(axis);
    if (is_used_in(graph, *contraction.column_factor, axis)) tiling.panel_batch.push_back(axis);
  }
  tiling.panel = {contraction.column_factor->stage, contraction.column_factor->output};
  tiling.panel_dimensions = contraction.column_factor->indices.size();
  return tiling;
}

std::pair<AxisId, AxisId> tile(const StageGraph& graph, StepWriter& steps, StageId stage,
                               AxisId axis, int64_t factor) {
  const int64_t extent = constant_extent(graph, axis).value_or(factor);
  return steps.split(stage, axis, std::clamp<int64_t>(extent, 1, factor));
}

std::vector<AxisId> joined(std::initializer_list<std::vector<AxisId>> parts) {
  std::vector<AxisId> all;
  for (const std::vector<AxisId>& part : parts)
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// Rows of vectors of columns: each step of the reduction reads one vector of columns and adds it,
/// times one element a row.
void write_outer_products(const StageGraph& graph, const Tiling& tiling, StepWriter& steps,
                          const Values& values) {
  const StageId id = tiling.stage;
  const auto [rows, row] =
      tile(graph, steps, id, tiling.contraction.row, values.get("rows", kTileRows));
  const auto [columns, column] =
      tile(graph, steps, id, tiling.contraction.column, values.get("lanes", 1));
  std::vector<AxisId> reduce = tiling.reduce;
  std::vector<AxisId> depth;
  if (const int64_t steps_at_once = values.get("depth", 0); steps_at_once > 0) {
    const auto [chunks, chunk] = tile(graph, steps, id, reduce[0], steps_at_once);
    depth = {chunks};
    reduce[0] = chunk;
  }
  const bool columns_first = values.get("columns first", 0) != 0;
  const std::vector<AxisId> tiles =
      columns_first ? std::vector<AxisId>{columns, rows} : std::vector<AxisId>{rows, columns};
  steps.reorder(id, joined({tiling.batch, depth, tiles, reduce, {row, column}}));
  steps.vectorize(id, column);
  steps.unroll(id, row);
  if (values.get("parallel", 0) != 0) {
    std::vector<AxisId> outer = tiling.batch;
    if (depth.empty()) outer.push_back(tiles[0]);
    parallel_outer(graph, steps, id, outer);
  }
}

/// The same with the columns outermost, whose part of the column factor is copied next to each
/// other first: it is read once for each tile of rows.
void write_packed_panels(const StageGraph& graph, const Tiling& tiling, StepWriter& steps,
                         const Values& values) {
  const StageId id = tiling.stage;
  const auto [rows, row] =
      tile(graph, steps, id, tiling.contraction.row, values.get("rows", kTileRows));
  const auto [columns, column] =
      tile(graph, steps, id, tiling.contraction.column, values.get("lanes", 1));
  steps.reorder(id, joined({tiling.batch, {columns, rows}, tiling.reduce, {row, column}}));
  steps.vectorize(id, column);
  steps.unroll(id, row);
  if (values.get("parallel", 0) != 0)
    parallel_outer(graph, steps, id, joined({tiling.batch, {columns}}));
  const auto [copy, axes] = steps.cache_read(tiling.panel, tiling.panel_dimensions, id);
  steps.compute_at(copy, id, columns);
}

/// The column factor is copied first, in the order in which the tiles read it: a panel for each
/// vector of columns, with the steps of the reduction next to each other.
void write_panels_in_order(const StageGraph& graph, const Tiling& tiling, StepWriter& steps,
                           const Values& values) {
  const StageId id = tiling.stage;
  const bool parallel = values.get("parallel", 0) != 0;
  const auto [rows, row] =
      tile(graph, steps, id, tiling.contraction.row, values.get("rows", kTileRows));
  const auto [columns, column] =
      tile(graph, steps, id, tiling.contraction.column, values.get("lanes", 1));
  std::vector<AxisId> outer = tiling.batch;
  std::vector<AxisId> tiles = {rows, columns};
  if (const int64_t block = values.get("rows of a panel", 0); block > 0) {
    const auto [blocks, inner] = steps.split(id, rows, block);
    outer.push_back(blocks);
    tiles = {columns, inner};
  } else {
    outer.push_back(rows);
    tiles = {columns};
  }
  steps.reorder(id, joined({outer, tiles, tiling.reduce, {row, column}}));
  const std::vector<AxisId> layout =
      joined({tiling.panel_batch, {columns}, tiling.reduce, {column}});
  const auto [copy, axes] = steps.cache_read(tiling.panel, id, layout);
  steps.vectorize(id, column);
  steps.unroll(id, row);
  if (parallel) parallel_outer(graph, steps, id, outer);

  if (is_contiguous_in(graph, *tiling.contraction.column_factor, tiling.contraction.column)) {
    steps.vectorize(copy, axes.back());
  } else {
    // Both sides by whole lines of the cache.
    const auto [chunks, chunk] = steps.split(copy, axes[axes.size() - 2], kLine);
    steps.reorder(copy, {chunks, axes.back(), chunk});
  }
  if (parallel) {
    const auto end = axes.begin() + static_cast<std::ptrdiff_t>(tiling.panel_batch.size()) + 1;
    for (auto axis = axes.begin(); axis != end; ++axis)
      steps.parallel(copy, *axis);
  }
}

/// Whether a copy has the elements of the column factor in another order, and no more of them.
bool may_be_in_order(const StageGraph& graph, const Tiling& tiling) {
  const Contraction& contraction = tiling.contraction;
  const bool is_other = contraction.row_factor->stage != tiling.panel.stage;
  const bool is_cell = graph[tiling.stage].cell_of >= 0 || graph[tiling.panel.stage].cell_of >= 0;
  if (!is_other || is_cell || graph[tiling.stage].part_of) return false;
  std::vector<AxisId> used = joined({tiling.panel_batch, tiling.reduce, {contraction.column}});
  if (contraction.column_factor->indices.size() != used.size()) return false;
  return std::ranges::all_of(contraction.column_factor->indices, [&](const ir::Expr& index) {
    return std::ranges::any_of(
        used, [&](AxisId axis) { return index == ir::Expr(graph.axes[axis].value); });
  });
}

/// Whether the copy is worth its time: there are rows enough to read it, and it is large, or its
/// columns are far apart where they are.
bool gains_by_order(const StageGraph& graph, const Tiling& tiling) {
  const Contraction& contraction = tiling.contraction;
  if (constant_extent(graph, contraction.row).value_or(kRowsForCopy) < kRowsForCopy) return false;
  if (!is_contiguous_in(graph, *contraction.column_factor, contraction.column)) return true;
  int64_t elements = 1;
  for (const AxisId axis : joined({tiling.reduce, {contraction.column}})) {
    const std::optional<int64_t> extent = constant_extent(graph, axis);
    if (!extent) return false;
    elements = std::min(elements, kLargePanels) * std::min(*extent, kLargePanels);
  }
  return elements >= kLargePanels;
}

/// Dot products of vectors along the reduction, several rows and columns at once.
void write_dots(const StageGraph& graph, const Tiling& tiling, int64_t lanes, StepWriter& steps,
                const Values& values) {
  const StageId id = tiling.stage;
  const auto [rows, row] =
      tile(graph, steps, id, tiling.contraction.row, values.get("rows", kDotRows));
  const auto [columns, column] =
      tile(graph, steps, id, tiling.contraction.column, values.get("columns", kDotRows));
  std::vector<AxisId> reduce = tiling.reduce;
  const auto [chunks, chunk] = steps.split(id, reduce.back(), lanes);
  reduce.back() = chunks;
  steps.reorder(id, joined({tiling.batch, {rows, columns}, reduce, {row, column, chunk}}));
  steps.vectorize(id, chunk);
  steps.unroll(id, column);
  steps.unroll(id, row);
  if (values.get("parallel", 0) != 0)
    parallel_outer(graph, steps, id, joined({tiling.batch, {rows}}));
}

Parameter rows_parameter(const StageGraph& graph, AxisId row) {
  return tile_parameter(graph, "rows", row, {1, 2, 4, 6, 8, 10, 12, 14, 16}, kTileRows);
}

Sketch dots_sketch(const Chooser& chooser, const Tiling& tiling, int64_t lanes, bool parallel) {
  const StageGraph& graph = chooser.graph;
  return {.name = "dot products",
          .parameters = {tile_parameter(graph, "rows", tiling.contraction.row, {1, 2, 4, 6, 8},
                                        kDotRows),
                         tile_parameter(graph, "columns", tiling.contraction.column,
                                        {1, 2, 4, 6, 8}, kDotRows),
                         parallel_parameter(parallel)},
          .write = [&graph, tiling, lanes](StepWriter& steps, const Values& values) {
            write_dots(graph, tiling, lanes, steps, values);
          }};
}

}  // namespace

std::vector<Sketch> contraction_sketches(const Chooser& chooser, StageId id,
                                         const Contraction& contraction, bool may_be_parallel) {
  const StageGraph& graph = chooser.graph;
  const AxisId innermost = graph[id].reduce.back();
  const bool as_dots = !is_contiguous_in(graph, *contraction.column_factor, contraction.column) &&
                       is_contiguous_in(graph, *contraction.column_factor, innermost) &&
                       is_contiguous_in(graph, *contraction.row_factor, innermost) &&
                       may_reassociate(chooser, id);
  const Tiling tiling = tiling_of(graph, id, contraction);
  const bool in_order = may_be_parallel && may_be_in_order(graph, tiling);
  const bool dots_first = as_dots && !(in_order && gains_by_order(graph, tiling));
  const AxisId vector_axis = dots_first ? innermost : contraction.column;
  const std::optional<int64_t> lanes = vector_factor(graph, id, vector_axis, kVectorBytes);
  if (!lanes) return {};

  const bool parallel = may_be_parallel && is_large(graph, id);
  if (dots_first) return {dots_sketch(chooser, tiling, *lanes, parallel)};
  const Parameter rows = rows_parameter(graph, contraction.row);
  const Parameter columns = lanes_parameter(graph, contraction.column, *lanes);
  std::vector<Sketch> sketches = {
      {.name = "outer products",
       .parameters = {rows,
                      columns,
                      tile_parameter(graph, "depth", tiling.reduce[0], {0, 64, 128, 256, 512}, 0),
                      {"columns first", {0, 1}, 0},
                      parallel_parameter(parallel)},
       .write = [&graph, tiling](StepWriter& steps, const Values& values) {
         write_outer_products(graph, tiling, steps, values);
       }}};
  if (in_order) {
    const bool has_blocks = constant_extent(graph, contraction.row).value_or(0) >= kRowsForBlocks;
    Sketch sketch = {
        .name = "outer products of panels in order",
        .parameters = {rows,
                       columns,
                       {"rows of a panel", {0, 4, 8, 16, 32}, has_blocks ? kTilesOfBlock : 0},
                       parallel_parameter(parallel)},
        .write = [&graph, tiling](StepWriter& steps, const Values& values) {
          write_panels_in_order(graph, tiling, steps, values);
        }};
    const bool is_first = gains_by_order(graph, tiling);
    sketches.insert(is_first ? sketches.begin() : sketches.end(), std::move(sketch));
  }
  const bool may_copy = graph[id].cell_of < 0 && graph[id].part_of == std::nullopt;
  if (may_copy && may_be_parallel) {
    sketches.push_back({.name = "outer products of packed panels",
                        .parameters = {rows, columns, parallel_parameter(parallel)},
                        .write = [&graph, tiling](StepWriter& steps, const Values& values) {
                          write_packed_panels(graph, tiling, steps, values);
                        }});
  }
  return sketches;
}

}  // namespace kiln::autoschedule
