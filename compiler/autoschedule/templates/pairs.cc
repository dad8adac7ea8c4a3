// What two rows are reduced to, each of one tensor with each of another:
//
//   D[i, j] = sum[k]((X[i, k] - Y[j, k]) * (X[i, k] - Y[j, k]))  ->  rows i, columns j
#include "compiler/autoschedule/templates/pairs.h"

#include <algorithm>

#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {
namespace {

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

std::optional<Pairs> pairs_of(const Chooser& chooser, StageId id) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  if (stage.data.size() < 2 || stage.types.size() != 1 || stage.reduce.empty()) return std::nullopt;
  Pairs pairs{.row = *(stage.data.end() - 2), .column = stage.data.back()};
  const auto rows = constant_extent(graph, pairs.row);
  const auto columns = constant_extent(graph, pairs.column);
  const auto steps = constant_extent_of(graph, stage.reduce);
  if (!rows || !columns || !steps || *rows < 2 || *columns < 2 || *steps < 1) return std::nullopt;
  const int64_t lanes = register_lanes(chooser, id);
  pairs.bodies = schedule::expanded_bodies(graph, id);
  pairs.work = element_work(graph, pairs.bodies, chooser.machine, lanes);
  if (!are_pairs(graph, pairs.work.reads, pairs.row, pairs.column)) return std::nullopt;
  pairs.busy = std::max(pairs.work.busy.all, pairs.work.busy.multiply_adds);
  pairs.size = size_on(chooser.machine, lanes);
  pairs.size.rows = *rows;
  pairs.size.columns = *columns;
  pairs.size.steps = *steps;
  return pairs;
}

}  // namespace kiln::autoschedule
