// Sketches of stages that reduce nothing: vectors along the last axis, and where what is read lies
// along another one, tiles or blocks of both.
//
//   Y[i, j] = X[j, i]              tiles of 16 x 32, transposed in L1
//   Y[i, j] = X[i, j] + Z[j, i]    blocks, so that lines of Z are read while they are in L1
#include <algorithm>

#include "compiler/autoschedule/templates/stage_schedules.h"
#include "compiler/ir/build.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {
namespace {

// A row of so many elements is reduced in twice as many lanes, which hides how long an addition
// takes; the horizontal reduction at the end of a row takes longer then.
constexpr int64_t kLongRow = 512;

/// Whether steps can name an axis of the graph.
bool has_id(const std::vector<uint32_t>& named, uint32_t position) {
  return std::find(named.begin(), named.end(), position) != named.end();
}

/// Vectors for a reduction inside of the expressions of a stage, where neighbours in memory are
/// reduced.
struct InnerVectors {
  AxisId axis = 0;
  int64_t lanes = 0;
};

/// One that shares its axis with another reduction has no axis that steps could name.
std::vector<InnerVectors> vectors_inside(const Chooser& chooser, StageId whole) {
  const StageGraph& graph = chooser.graph;
  std::vector<InnerVectors> found;
  for (const StageId reduction : reductions_inside(graph, whole)) {
    const AxisId innermost = graph[reduction].reduce.back();
    if (!has_id(graph.axis_of_id, innermost) ||
        !is_contiguous(graph, graph[reduction], innermost) ||
        is_strided(graph, graph[reduction], innermost) || has_dependent_extents(graph, reduction) ||
        has_indirect_reads(graph[reduction]) || !may_reassociate(chooser, reduction)) {
      continue;
    }
    const bool is_long = constant_extent(graph, innermost).value_or(0) >= kLongRow;
    const std::optional<int64_t> factor =
        vector_factor(graph, reduction, innermost, is_long ? 2 * kVectorBytes : kVectorBytes);
    if (factor) found.push_back({innermost, *factor});
  }
  return found;
}

void write_elements(const StageGraph& graph, StageId id, const std::vector<InnerVectors>& inside,
                    StepWriter& steps, const Values& values) {
  std::vector<AxisId> outer = columns_of(graph[id]);
  const AxisId last = outer.back();
  outer.pop_back();
  if (const int64_t factor = values.get("lanes", 0); factor > 0) {
    auto [tiles, lanes] = steps.split(id, last, factor);
    steps.vectorize(id, lanes);
    if (const int64_t copies = values.get("unroll", 1); copies > 1) {
      const auto [groups, copy] = steps.split(id, tiles, copies);
      steps.unroll(id, copy);
      tiles = groups;
    }
    if (outer.empty()) outer.push_back(tiles);
  } else {
    outer.push_back(last);
  }
  if (values.get("parallel", 0) != 0) parallel_outer(graph, steps, id, outer);
  for (const InnerVectors& vectors : inside) {
    const auto [chunks, lanes] = steps.split(id, vectors.axis, vectors.lanes);
    steps.vectorize(id, lanes);
  }
}

/// Blocks of rows and columns, so that what is read along the rows is still in the cache when the
/// next column reads what is beside it.
void write_blocks(const StageGraph& graph, StageId id, AxisId across, StepWriter& steps,
                  const Values& values) {
  std::vector<AxisId> order = columns_of(graph[id]);
  const AxisId last = order.back();
  order.pop_back();
  std::erase(order, across);
  const auto [rows, row] = steps.split(id, across, values.get("rows", 1));
  const auto [columns, column] = steps.split(id, last, values.get("lanes", 1));
  order.push_back(rows);
  const std::vector<AxisId> outer = order;
  order.insert(order.end(), {columns, row, column});
  steps.reorder(id, order);
  steps.vectorize(id, column);
  if (values.get("parallel", 0) != 0) parallel_outer(graph, steps, id, outer);
}

/// The axis along which neighbours are read where the last axis steps over rows, as in a transpose.
std::optional<AxisId> axis_across(const StageGraph& graph, StageId id) {
  const Stage& stage = graph[id];
  const std::vector<AxisId> columns = columns_of(stage);
  if (columns.size() < 2 || !is_strided(graph, stage, columns.back())) return std::nullopt;
  for (size_t i = columns.size() - 1; i-- > 0;) {
    if (is_contiguous(graph, stage, columns[i])) return columns[i];
  }
  return std::nullopt;
}

/// Whether a stage only moves elements.
bool is_copy(const Stage& stage) {
  if (stage.bodies.size() != 1) return false;
  const ir::Expr body = schedule::without_casts(stage.bodies[0]);
  return ir::as<ir::TensorRead>(body) != nullptr;
}

/// Tiles that are transposed in L1: read along the rows of the source, an element at a
/// time, and written in vectors. A vector of elements from as many rows would be a gather.
void write_transposed_tiles(const StageGraph& graph, StageId id, AxisId across, StepWriter& steps,
                            const Values& values) {
  const std::vector<AxisId> data = columns_of(graph[id]);
  const auto [tile, axes] = steps.cache_write(id, "local");
  std::vector<AxisId> order = data;
  order.pop_back();
  std::erase(order, across);
  const auto [rows, row] = steps.split(id, across, values.get("rows", 16));
  const auto [columns, column] = steps.split(id, data.back(), values.get("lanes", 32));
  order.push_back(columns);
  const std::vector<AxisId> outer = order;
  order.insert(order.end(), {rows, row, column});
  steps.reorder(id, order);
  steps.vectorize(id, column);
  if (values.get("parallel", 0) != 0) parallel_outer(graph, steps, id, outer);
  steps.compute_at(tile, id, rows);
  const size_t at = static_cast<size_t>(std::ranges::find(data, across) - data.begin());
  steps.reorder(tile, {axes.back(), axes[at]});
  steps.unroll(tile, axes[at]);
}

}  // namespace

std::vector<Sketch> element_sketches(const Chooser& chooser, StageId id, bool may_be_parallel) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  const std::vector<AxisId> columns = columns_of(stage);
  if (columns.empty()) return {};
  const AxisId last = columns.back();
  const std::optional<int64_t> factor = line_factor(graph, id, last);
  // A reduction for each element stands in the innermost loop, and has the vectors.
  const bool has_vectors = factor && !has_indirect_reads(stage) && !has_time_last(stage) &&
                           !is_used_inside(graph, id, last);
  Sketch elements{.name = "elements", .parameters = {}, .write = {}};
  if (has_vectors) {
    elements.parameters = {lanes_parameter(graph, last, *factor), {"unroll", {1, 2, 4}, 1}};
  }
  const Parameter parallel = parallel_parameter(may_be_parallel && is_large(graph, id));
  elements.parameters.push_back(parallel);
  const std::vector<InnerVectors> inside = vectors_inside(chooser, id);
  elements.write = [&graph, id, inside](StepWriter& steps, const Values& values) {
    write_elements(graph, id, inside, steps, values);
  };
  std::vector<Sketch> sketches = {std::move(elements)};
  const std::optional<AxisId> across = axis_across(graph, id);
  const bool is_large_tile = across && constant_extent(graph, *across).value_or(16) >= 16 &&
                             constant_extent(graph, last).value_or(32) >= 32;
  if (may_be_parallel && has_vectors && is_large_tile && is_copy(stage) &&
      id < graph.kernel->definition.stages.size()) {
    Sketch transposed{
        .name = "transposed tiles",
        .parameters = {tile_parameter(graph, "rows", *across, {8, 16, 32}, 16),
                       tile_parameter(graph, "lanes", last, {16, 32, 64}, 32), parallel},
        .write = [&graph, id, across](StepWriter& steps, const Values& values) {
          write_transposed_tiles(graph, id, *across, steps, values);
        }};
    sketches.insert(sketches.begin(), std::move(transposed));
  }
  if (has_vectors && across && inside.empty()) {
    Sketch blocks{.name = "blocks",
                  .parameters = {tile_parameter(graph, "rows", *across, {4, 8, 16, 32, 64}, 16),
                                 lanes_parameter(graph, last, *factor), parallel},
                  .write = [&graph, id, across](StepWriter& steps, const Values& values) {
                    write_blocks(graph, id, *across, steps, values);
                  }};
    // A line of what lies across is read by the next rows too, which must come before it is gone.
    const bool comes_first = may_be_parallel && is_large_tile && !is_copy(stage);
    sketches.insert(comes_first ? sketches.begin() : sketches.end(), std::move(blocks));
  }
  return sketches;
}

}  // namespace kiln::autoschedule
