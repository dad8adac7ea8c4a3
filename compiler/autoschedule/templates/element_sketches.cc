// Sketches of stages that reduce nothing: vectors along the last axis, and where what is read lies
// along another one, blocks of both.
#include <algorithm>

#include "compiler/autoschedule/recognise/joined_axes.h"
#include "compiler/autoschedule/recognise/sides.h"
#include "compiler/autoschedule/templates/across_sketches.h"
#include "compiler/autoschedule/templates/group_sketch.h"
#include "compiler/autoschedule/templates/repeated_rows.h"
#include "compiler/autoschedule/templates/stage_cycles.h"
#include "compiler/autoschedule/templates/stage_schedules.h"
#include "compiler/autoschedule/templates/tile_cost.h"
#include "compiler/ir/build.h"
#include "compiler/schedule/graph/reads.h"
#include "runtime/core/cpu_name.h"

namespace kiln::autoschedule {
namespace {

// Rows that cores share: with as many a core of a plan for few nobody waits for the last one.
constexpr int64_t kFewRows = kManyTasks * kFewCores;

/// Whether steps can name an axis of the graph.
bool has_id(const std::vector<uint32_t>& named, uint32_t position) {
  return std::find(named.begin(), named.end(), position) != named.end();
}

/// Vectors for a reduction inside of the expressions of a stage, where neighbours in memory are
/// reduced.
struct InnerVectors {
  std::vector<AxisId> line;  // axes that are one
  int64_t lanes = 0;
};

/// One that shares its axis with another reduction has no axis that steps could name.
std::vector<InnerVectors> vectors_inside(const Chooser& chooser, StageId whole) {
  const StageGraph& graph = chooser.graph;
  const auto is_named = [&](AxisId axis) { return has_id(graph.axis_of_id, axis); };
  std::vector<InnerVectors> found;
  for (const StageId reduction : reductions_inside(graph, whole)) {
    const AxisId innermost = graph[reduction].reduce.back();
    if (!std::ranges::all_of(graph[reduction].reduce, is_named) ||
        !is_contiguous(graph, graph[reduction], innermost) ||
        is_strided(graph, graph[reduction], innermost) || has_dependent_extents(graph, reduction) ||
        has_indirect_reads(graph[reduction]) || !may_reassociate(chooser, reduction)) {
      continue;
    }
    std::vector<AxisId> line = joined_last(graph, reduction, graph[reduction].reduce);
    const bool is_long = constant_extent_of(graph, line).value_or(0) >= kLongRow;
    const std::optional<int64_t> factor =
        vector_factor(graph, reduction, line, is_long ? 2 * kVectorBytes : kVectorBytes);
    if (factor) found.push_back({std::move(line), *factor});
  }
  return found;
}

/// How many iterations loops have together, `most` where that is not known or more.
int64_t iterations_of(const StageGraph& graph, const std::vector<AxisId>& loops, int64_t most) {
  int64_t count = 1;
  for (const AxisId loop : loops) {
    const int64_t extent = constant_extent(graph, loop).value_or(most);
    count = std::min(count * std::min(extent, most), most);
  }
  return count;
}

/// The last axis of a stage, with those before that are one loop with it where lines are short and
/// no whole vectors: images of 7 x 7 have less than a vector in each. None of the first
/// `dimensions` axes is, in whose loops others stand.
std::vector<AxisId> line_of_elements(const Chooser& chooser, StageId id, size_t dimensions) {
  // Of a longer line the vector that is not full is less than an eighth.
  constexpr int64_t kFewVectors = 8;
  const StageGraph& graph = chooser.graph;
  std::vector<AxisId> columns = columns_of(graph[id]);
  const std::vector<AxisId> last = {columns.back()};
  const int64_t factor = element_factor(chooser, id, last).value_or(register_lanes(chooser, id));
  const std::optional<int64_t> extent = constant_extent(graph, last[0]);
  const bool is_short = extent && *extent % factor != 0 && *extent < kFewVectors * factor;
  if (!is_short || graph[id].time_dimension >= 0) return last;
  const size_t outside = std::min(dimensions, columns.size() - 1);
  columns.erase(columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(outside));
  return joined_last(graph, id, columns);
}

/// The other axes of a stage.
std::vector<AxisId> rows_beside(const StageGraph& graph, StageId id,
                                const std::vector<AxisId>& line) {
  std::vector<AxisId> rows = columns_of(graph[id]);
  rows.resize(rows.size() - line.size());
  return rows;
}

/// Elements of a part of a row that take half as long as waking a core: nobody waits longer than
/// that for the last part. Nothing where rows are enough, or nobody knows what an element takes.
std::optional<int64_t> elements_of_part(const Chooser& chooser, StageId id,
                                        const std::vector<AxisId>& rows) {
  const int64_t count = iterations_of(chooser.graph, rows, kFewRows);
  if (count == 1 || count == kFewRows) return std::nullopt;
  const std::optional<double> cycles = stage_cycles(chooser, id);
  const std::optional<int64_t> elements = constant_work(chooser.graph, id);
  if (!cycles || *cycles <= 0 || !elements) return std::nullopt;
  const double each = *cycles / static_cast<double>(*elements);
  return static_cast<int64_t>(chooser.machine.wake_cycles / 2 / each);
}

/// What cores share of a stage whose rows, of the axes `rows`, are `tiles` of `line` each: the
/// rows, and where these are fewer than cores may be, but long, parts of so many elements as well.
/// A single row is what a tensor of one dimension is.
std::vector<AxisId> shared_loops(const StageGraph& graph, StageId id, std::vector<AxisId> rows,
                                 const std::vector<AxisId>& line, AxisId tiles,
                                 int64_t elements_of_tile, std::optional<int64_t> elements_of_part,
                                 StepWriter& steps) {
  const int64_t count = iterations_of(graph, rows, kFewRows);
  const int64_t length = constant_extent_of(graph, line).value_or(0);
  if (count == 1) {
    rows.push_back(tiles);
  } else if (count < kFewRows && elements_of_part && length >= 2 * *elements_of_part) {
    const int64_t part = std::max<int64_t>(*elements_of_part / elements_of_tile, 1);
    rows.push_back(steps.split(id, tiles, part).first);
  }
  return rows;
}

void write_elements(const StageGraph& graph, StageId id, const std::vector<AxisId>& line,
                    const std::vector<InnerVectors>& inside,
                    std::optional<int64_t> elements_of_part, StepWriter& steps,
                    const Values& values) {
  const bool is_shared = values.get("parallel", 0) != 0;
  std::vector<AxisId> outer = rows_beside(graph, id, line);
  const AxisId last = steps.fuse(id, line);
  if (const int64_t factor = values.get("lanes", 0); factor > 0) {
    auto [tiles, lanes] = steps.split(id, last, factor);
    steps.vectorize(id, lanes);
    if (const int64_t copies = values.get("unroll", 1); copies > 1) {
      const auto [groups, copy] = steps.split(id, tiles, copies);
      steps.unroll(id, copy);
      tiles = groups;
    }
    if (is_shared) {
      const int64_t elements = factor * std::max<int64_t>(values.get("unroll", 1), 1);
      outer =
          shared_loops(graph, id, std::move(outer), line, tiles, elements, elements_of_part, steps);
    }
  } else {
    outer.push_back(last);
  }
  if (is_shared) parallel_outer(graph, steps, id, outer);
  for (const InnerVectors& vectors : inside) {
    const auto [chunks, lanes] = steps.split(id, steps.fuse(id, vectors.line), vectors.lanes);
    steps.vectorize(id, lanes);
  }
}

}  // namespace

std::vector<Sketch> element_sketches(const Chooser& chooser, StageId id, bool may_be_parallel,
                                     size_t dimensions) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  const std::vector<AxisId> columns = columns_of(stage);
  if (columns.empty()) return {};
  const AxisId last = columns.back();
  const std::vector<InnerVectors> inside = vectors_inside(chooser, id);
  const std::vector<AxisId> line = reductions_inside(graph, id).empty()
                                       ? line_of_elements(chooser, id, dimensions)
                                       : std::vector<AxisId>{last};
  const std::optional<int64_t> factor = element_factor(chooser, id, line);
  // A reduction for each element stands in the innermost loop, and has the vectors.
  const bool has_vectors = factor && !has_indirect_reads_along(graph, stage, last) &&
                           !has_time_last(stage) && !is_used_inside(graph, id, last);
  Sketch elements{.name = "elements", .parameters = {}, .write = {}};
  if (has_vectors) {
    elements.parameters = {lanes_parameter(graph, line, *factor), {"unroll", {1, 2, 4}, 1}};
  }
  const Parameter parallel = parallel_parameter(may_be_parallel && is_worth_sharing(chooser, id));
  elements.parameters.push_back(parallel);
  elements.write = [&graph, id, line, inside,
                    part = elements_of_part(chooser, id, rows_beside(graph, id, line))](
                       StepWriter& steps, const Values& values) {
    write_elements(graph, id, line, inside, part, steps, values);
  };
  if (line.size() == 1) {
    if (dimensions == 0) {
      if (std::optional<Sketch> rows = repeated_rows_sketch(chooser, id, may_be_parallel))
        return {*std::move(rows), std::move(elements)};
    }
    if (std::optional<Sketch> groups = group_sketch(chooser, id, may_be_parallel, dimensions))
      return {*std::move(groups), std::move(elements)};
  }
  if (!has_vectors || !inside.empty()) return {std::move(elements)};
  return with_blocks_across(chooser, id, std::move(elements), may_be_parallel);
}

}  // namespace kiln::autoschedule
