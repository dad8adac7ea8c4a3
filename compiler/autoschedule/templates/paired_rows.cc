// Distances of points to other points, and what else is reduced of two rows:
//
//   D[i, j] = sum[k]((X[i, k] - Y[j, k]) * (X[i, k] - Y[j, k])), 500 x 500 of 128
//     ->  5 x 2 sums, each a vector along k, so that a row is loaded for several of the other's
//
// Tiles as those of dot products, of any function of two elements. That takes a Zen 3 1.1 ms, and
// 3.9 with one sum at a time, which waits for two loads a vector.
#include "compiler/autoschedule/templates/paired_rows.h"

#include "compiler/autoschedule/templates/contraction_loops.h"
#include "compiler/autoschedule/templates/dot_products.h"
#include "compiler/autoschedule/templates/stage_cycles.h"

namespace kiln::autoschedule {
namespace {

// Of shorter rows, adding up the lanes takes more than is saved: 10000 x 50 of 16 take a Zen 3 745
// us one at a time and 1130 so, 1000 x 10 of 32 21 and 20, 130 x 215 of 46 155 and 103.
constexpr int64_t kLeastVectors = 4;

}  // namespace

std::optional<PairSketch> paired_rows_sketch(const Chooser& chooser, StageId id, const Pairs& pairs,
                                             bool may_be_parallel) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  const int64_t lanes = pairs.size.register_lanes;
  ContractionSize size = pairs.size;
  size.steps = constant_extent(graph, stage.reduce.back()).value_or(1);
  if (size.steps < kLeastVectors * lanes) return std::nullopt;
  const DotShape tile = best_pairs(size, pairs.busy);
  const Tiling tiling{.stage = id,
                      .contraction = {.row = pairs.row, .column = pairs.column},
                      .batch = {stage.data.begin(), stage.data.end() - 2},
                      .reduce = stage.reduce};
  const int64_t around = pairs.size.steps / size.steps;
  // Other tiles round in another way, which the candidates of a stage may not.
  return PairSketch{
      .sketch = {.name = "pairs of rows",
                 .parameters = {{"rows", {tile.rows}, tile.rows},
                                {"columns", {tile.columns}, tile.columns},
                                parallel_parameter(may_be_parallel &&
                                                   is_worth_sharing(chooser, id))},
                 .write =
                     [&graph, tiling, lanes](StepWriter& steps, const Values& values) {
                       write_dots(graph, tiling, lanes, steps, values);
                     }},
      .cycles = static_cast<double>(around) * pair_cycles(size, tile, pairs.busy)};
}

}  // namespace kiln::autoschedule
