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

constexpr int64_t kElementBytes = 4;
// Vectors of rows, so that the last one, which may be nearly empty, is a quarter of the work at
// most.
constexpr int64_t kFewestGroups = 4;

/// The loops of a stage inside of a row: those over its elements, then those of a reduction.
std::vector<AxisId> loops_in_row(const Stage& stage, size_t dimensions) {
  std::vector<AxisId> loops(stage.data.begin() + static_cast<ptrdiff_t>(dimensions),
                            stage.data.end());
  loops.insert(loops.end(), stage.reduce.begin(), stage.reduce.end());
  return loops;
}

int64_t lanes_of(const Machine& machine) { return machine.vectors.bytes / kElementBytes; }

/// Whether a row would leave lanes empty, and the registers hold it. Without masks what a row has
/// beyond a full vector goes in shorter ones, each with all of a function like exp: there a row of
/// up to all registers is short, and one without functions never: sums of squares of 1000 rows of 7
/// take 1.5 us on a Zen 3, and 1.9 where lanes are rows, whose elements are apart.
bool is_short(const Chooser& chooser, StageId id, size_t dimensions, bool has_functions) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  const Machine& machine = chooser.machine;
  if (!machine.has_masks() && !has_functions) return false;
  const int64_t most = machine.has_masks() ? lanes_of(machine) : machine.vectors.registers;
  const bool fills_lanes =
      std::ranges::all_of(stage.types, [](DType type) { return size_of(type) == kElementBytes; });
  if (!fills_lanes || !reductions_inside(graph, id).empty()) return false;
  int64_t iterations = 1;
  for (const AxisId loop : loops_in_row(stage, dimensions)) {
    const std::optional<int64_t> extent = constant_extent(graph, loop);
    if (!extent || *extent >= most) return false;
    iterations *= std::max<int64_t>(*extent, 1);
  }
  return iterations < most;
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
  const bool functions =
      has_functions(graph, rows.last) ||
      std::ranges::any_of(rows.members, [&](StageId id) { return has_functions(graph, id); });
  const auto short_one = [&](StageId id) {
    return is_short(chooser, id, rows.dimensions, functions);
  };
  const AxisId row = graph[rows.last].data[rows.dimensions - 1];
  return short_one(rows.last) && std::ranges::all_of(rows.members, short_one) &&
         constant_extent(graph, row).value_or(0) >= kFewestGroups * lanes_of(chooser.machine);
}

AxisId write_short_rows(const Chooser& chooser, StepWriter& steps, const RowStages& rows) {
  const StageGraph& graph = chooser.graph;
  const size_t last_dimension = rows.dimensions - 1;
  for (const StageId member : rows.members)
    write_stage(graph, steps, member, graph[member].data[last_dimension], rows.dimensions);
  const Stage& last = graph[rows.last];
  const auto [groups, row] =
      steps.split(rows.last, last.data[last_dimension], lanes_of(chooser.machine));
  write_stage(graph, steps, rows.last, row, rows.dimensions);
  for (const StageId member : rows.members)
    steps.compute_at(member, rows.last, groups);
  return groups;
}

}  // namespace kiln::autoschedule
