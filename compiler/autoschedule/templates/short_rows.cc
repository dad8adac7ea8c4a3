// Rows of fewer elements than a vector has lanes: a lane becomes a row.
//
//   softmax of 1000 x 10: 16 rows at once, the 10 elements of each in 10 registers
//
// The loop interchange of outer-loop vectorisation (Nuzman and Zaks, PACT 2008). Sums keep their
// order, and no lane is idle but for the last group.
#include "compiler/autoschedule/templates/short_rows.h"

#include <algorithm>

namespace kiln::autoschedule {
namespace {

// Of a CPU that loads elements which lie apart in one instruction; others take longer for it than
// the lanes are worth.
constexpr int64_t kRegisterBytes = 64;
constexpr int64_t kElementBytes = 4;
constexpr int64_t kLanes = kRegisterBytes / kElementBytes;
// Vectors of rows; with fewer the last one, which may be nearly empty, is too much of the work.
constexpr int64_t kFewestGroups = 4;

/// The loops of a stage inside of a row: those over its elements, then those of a reduction.
std::vector<AxisId> loops_in_row(const Stage& stage, size_t dimensions) {
  std::vector<AxisId> loops(stage.data.begin() + static_cast<ptrdiff_t>(dimensions),
                            stage.data.end());
  loops.insert(loops.end(), stage.reduce.begin(), stage.reduce.end());
  return loops;
}

bool is_short(const StageGraph& graph, StageId id, size_t dimensions) {
  const Stage& stage = graph[id];
  const bool fills_lanes =
      std::ranges::all_of(stage.types, [](DType type) { return size_of(type) == kElementBytes; });
  if (!fills_lanes || !reductions_inside(graph, id).empty()) return false;
  int64_t iterations = 1;
  for (const AxisId loop : loops_in_row(stage, dimensions)) {
    const std::optional<int64_t> extent = constant_extent(graph, loop);
    if (!extent || *extent >= kLanes) return false;
    iterations *= std::max<int64_t>(*extent, 1);
  }
  return iterations < kLanes;
}

/// Vectors along `row`, and all inside of it unrolled, so that it stays in registers.
void write_stage(const StageGraph& graph, StepWriter& steps, StageId id, AxisId row,
                 size_t dimensions) {
  std::vector<AxisId> order = loops_in_row(graph[id], dimensions);
  for (const AxisId loop : order)
    steps.unroll(id, loop);
  order.push_back(row);
  if (order.size() > 1) steps.reorder(id, order);
  steps.vectorize(id, row);
}

}  // namespace

bool are_short(const Chooser& chooser, const RowStages& rows) {
  const StageGraph& graph = chooser.graph;
  const auto short_one = [&](StageId id) { return is_short(graph, id, rows.dimensions); };
  const AxisId row = graph[rows.last].data[rows.dimensions - 1];
  return chooser.machine.vectors.bytes >= kRegisterBytes && short_one(rows.last) &&
         std::ranges::all_of(rows.members, short_one) &&
         constant_extent(graph, row).value_or(0) >= kFewestGroups * kLanes;
}

AxisId write_short_rows(const Chooser& chooser, StepWriter& steps, const RowStages& rows) {
  const StageGraph& graph = chooser.graph;
  const size_t last_dimension = rows.dimensions - 1;
  for (const StageId member : rows.members)
    write_stage(graph, steps, member, graph[member].data[last_dimension], rows.dimensions);
  const Stage& last = graph[rows.last];
  const auto [groups, row] = steps.split(rows.last, last.data[last_dimension], kLanes);
  write_stage(graph, steps, rows.last, row, rows.dimensions);
  for (const StageId member : rows.members)
    steps.compute_at(member, rows.last, groups);
  return groups;
}

}  // namespace kiln::autoschedule
