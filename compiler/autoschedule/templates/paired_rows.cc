// Distances of points to other points, and what else is reduced of two rows:
//
//   D[i, j] = sum[k]((X[i, k] - Y[j, k]) * (X[i, k] - Y[j, k])), 500 x 500 of 128
//     ->  5 x 2 sums, each a vector along k, so that a row is loaded for several of the other's
//
// Tiles as those of dot products, of any function of two elements. That takes a Zen 3 1.1 ms, and
// 3.9 with one sum at a time, which waits for two loads a vector.
#include "compiler/autoschedule/templates/paired_rows.h"

#include <algorithm>

#include "compiler/autoschedule/templates/contraction_loops.h"
#include "compiler/autoschedule/templates/dot_products.h"
#include "compiler/autoschedule/templates/element_work.h"
#include "compiler/autoschedule/templates/stage_cycles.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {
namespace {

// Of shorter rows, adding up the lanes takes more than is saved: 10000 x 50 of 16 take a Zen 3 745
// us one at a time and 1130 so, 1000 x 10 of 32 21 and 20, 130 x 215 of 46 155 and 103.
constexpr int64_t kLeastVectors = 4;

/// Whether some tensors are read by rows and others by columns, and none by both.
bool are_pairs(const StageGraph& graph, const std::vector<const ir::TensorRead*>& reads, AxisId row,
               AxisId column) {
  const auto reads_along = [&](AxisId axis) {
    return std::ranges::any_of(
        reads, [&](const ir::TensorRead* read) { return is_used_in(graph, *read, axis); });
  };
  const bool has_both = std::ranges::any_of(reads, [&](const ir::TensorRead* read) {
    return is_used_in(graph, *read, row) && is_used_in(graph, *read, column);
  });
  return !has_both && reads_along(row) && reads_along(column);
}

}  // namespace

std::optional<Sketch> paired_rows_sketch(const Chooser& chooser, StageId id,
                                         const ReductionVectors& vectors, bool may_be_parallel) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  if (vectors.along_data || stage.data.size() < 2 || stage.types.size() != 1) return std::nullopt;
  const AxisId row = *(stage.data.end() - 2);
  const AxisId column = stage.data.back();
  const int64_t lanes = register_lanes(chooser, id);
  const auto rows = constant_extent(graph, row);
  const auto columns = constant_extent(graph, column);
  const auto steps = constant_extent(graph, stage.reduce.back());
  if (!rows || !columns || !steps || *rows < 2 || *columns < 2 || *steps < kLeastVectors * lanes)
    return std::nullopt;
  const std::vector<ir::Expr> bodies = schedule::expanded_bodies(graph, id);
  const ElementWork work = element_work(graph, bodies, chooser.machine, lanes);
  if (!are_pairs(graph, work.reads, row, column)) return std::nullopt;
  const double busy = std::max(work.busy.all, work.busy.multiply_adds);
  ContractionSize size = size_on(chooser.machine, lanes);
  size.rows = *rows;
  size.columns = *columns;
  size.steps = *steps;
  const DotShape tile = best_pairs(size, busy);
  const Tiling tiling{.stage = id,
                      .contraction = {.row = row, .column = column},
                      .batch = {stage.data.begin(), stage.data.end() - 2},
                      .reduce = stage.reduce};
  // Other tiles round in another way, which the candidates of a stage may not.
  return Sketch{
      .name = "pairs of rows",
      .parameters = {{"rows", {tile.rows}, tile.rows},
                     {"columns", {tile.columns}, tile.columns},
                     parallel_parameter(may_be_parallel && is_worth_sharing(chooser, id))},
      .write = [&graph, tiling, lanes](StepWriter& steps, const Values& values) {
        write_dots(graph, tiling, lanes, steps, values);
      }};
}

}  // namespace kiln::autoschedule
