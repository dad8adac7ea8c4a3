#include <algorithm>

#include "compiler/autoschedule/stage_schedules.h"

namespace kiln::autoschedule {
namespace {

constexpr int64_t kTileRows = 8;
constexpr int64_t kDotRows = 4;

/// The loops of a tiled contraction, the same for all sketches of it.
struct Tiling {
  StageId stage = 0;
  Contraction contraction;
  std::vector<AxisId> batch;  // data axes that are neither row nor column
  std::vector<AxisId> reduce;
  language::TensorId panel;  // the column factor
  size_t panel_dimensions = 0;
};

Tiling tiling_of(const StageGraph& graph, StageId id, const Contraction& contraction) {
  Tiling tiling{.stage = id, .contraction = contraction, .batch = {}, .reduce = graph[id].reduce};
  for (const AxisId axis : columns_of(graph[id])) {
    if (axis != contraction.row && axis != contraction.column) tiling.batch.push_back(axis);
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
  const AxisId vector_axis = as_dots ? innermost : contraction.column;
  const std::optional<int64_t> lanes = vector_factor(graph, id, vector_axis, kVectorBytes);
  if (!lanes) return {};

  const Tiling tiling = tiling_of(graph, id, contraction);
  const bool parallel = may_be_parallel && is_large(graph, id);
  if (as_dots) return {dots_sketch(chooser, tiling, *lanes, parallel)};
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
