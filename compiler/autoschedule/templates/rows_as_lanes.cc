// Points and colours that are multiplied by a small matrix:
//
//   Y[i, j] = sum[k](X[i, k] * M[k, j]), 100000 x 3 x 3
//     ->  8 points are the lanes of vectors; three results of each, and the steps, are written out
//
// us on one core of a Zen 3, 100000 points, one after the other and so: 2 x 2 433 and 28, 3 x 3
// 927 and 200, 3 x 2 607 and 58, 16 x 3 3420 and 575.
#include "compiler/autoschedule/templates/rows_as_lanes.h"

#include <algorithm>

#include "compiler/autoschedule/recognise/sides.h"
#include "compiler/autoschedule/templates/parameters.h"
#include "compiler/autoschedule/templates/stage_cycles.h"

namespace kiln::autoschedule {
namespace {

// Four are a vector.
constexpr int64_t kMostResults = 3;
// Results times steps that are code: their loads of neighbours become loads of whole vectors.
constexpr int64_t kMostWrittenOut = 64;

/// The data axes before that of the rows, and behind it those of the results of each.
struct Rows {
  std::vector<AxisId> outer;
  AxisId row = 0;
  std::vector<AxisId> results;
};

std::optional<Rows> rows_of(const StageGraph& graph, const Stage& stage, int64_t lanes) {
  const auto is_known_below = [&](AxisId axis, int64_t least) {
    return constant_extent(graph, axis).value_or(least) < least;
  };
  const auto first =
      std::ranges::find_if_not(stage.data.rbegin(), stage.data.rend(),
                               [&](AxisId axis) { return is_known_below(axis, kMostResults + 1); });
  const auto results = first.base();
  if (first == stage.data.rend() || is_known_below(*first, lanes)) return std::nullopt;
  return Rows{{stage.data.begin(), results - 1}, *first, {results, stage.data.end()}};
}

bool is_written_out(const StageGraph& graph, const Stage& stage, const Rows& rows) {
  std::vector<AxisId> axes = stage.reduce;
  axes.insert(axes.end(), rows.results.begin(), rows.results.end());
  return constant_extent_of(graph, axes).value_or(kMostWrittenOut + 1) <= kMostWrittenOut;
}

void write_rows_as_lanes(const StageGraph& graph, StageId id, const Rows& found, int64_t lanes,
                         StepWriter& steps, const Values& values) {
  const std::vector<AxisId>& reduce = graph[id].reduce;
  const auto [rows, lane] = steps.split(id, found.row, lanes);
  std::vector<AxisId> outer = found.outer;
  outer.push_back(rows);
  std::vector<AxisId> order = outer;
  order.insert(order.end(), reduce.begin(), reduce.end());
  order.insert(order.end(), found.results.begin(), found.results.end());
  order.push_back(lane);
  steps.reorder(id, order);
  steps.vectorize(id, lane);
  for (const AxisId axis : found.results)
    steps.unroll(id, axis);
  if (is_written_out(graph, graph[id], found)) {
    for (const AxisId axis : reduce)
      steps.unroll(id, axis);
  }
  if (values.get("parallel", 0) != 0) parallel_outer(graph, steps, id, outer);
}

}  // namespace

std::optional<Sketch> rows_as_lanes_sketch(const Chooser& chooser, StageId id,
                                           bool may_be_parallel) {
  const StageGraph& graph = chooser.graph;
  if (!is_plain_reduction_of_values(graph, id)) return std::nullopt;
  const int64_t lanes = register_lanes(chooser, id);
  const std::optional<Rows> rows = rows_of(graph, graph[id], lanes);
  if (!rows || (rows->results.size() != 1 && !is_written_out(graph, graph[id], *rows)))
    return std::nullopt;
  return Sketch{
      .name = "rows as lanes",
      .parameters = {parallel_parameter(may_be_parallel && is_worth_sharing(chooser, id))},
      .write = [&graph, id, rows = *rows, lanes](StepWriter& steps, const Values& values) {
        write_rows_as_lanes(graph, id, rows, lanes, steps, values);
      }};
}

}  // namespace kiln::autoschedule
