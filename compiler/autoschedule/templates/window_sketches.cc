// A reduction over a small window with few multiply-adds for each load, as a depthwise convolution
// or pooling: the window is unrolled for some lines at once, which share the lines they read.
//
//   3 x 3, 4 lines of the result read 6 lines of the image, not 12
//
// Register tiling of stencils; nothing is copied.
#include "compiler/autoschedule/templates/window_sketches.h"

#include <algorithm>

#include "compiler/autoschedule/templates/stage_cycles.h"
#include "compiler/ir/mutator.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {
namespace {

// Lines that are unrolled at once: as many sums as an addition takes cycles, so that none waits for
// the one before. A vector of each line is one register, since a window has a register beside it
// for each line that it reads: two of each take 1.1 to 2 times as long with 16 registers (Zen 3).
constexpr int64_t kLines = 4;
// Of the code that is unrolled, for these lines 128 operations: below the 1500 that the smallest
// cache of decoded instructions holds (Skylake), with what they load.
constexpr int64_t kMostSteps = 32;

bool is_small(const StageGraph& graph, const Stage& stage) {
  int64_t steps = 1;
  for (const AxisId axis : stage.reduce) {
    const std::optional<int64_t> extent = constant_extent(graph, axis);
    if (!extent || *extent < 1 || *extent > kMostSteps) return false;
    steps *= *extent;
    if (steps > kMostSteps) return false;
  }
  return steps > 1;
}

/// Whether lines that are neighbours read some of the same: the axis and one of the reduction stand
/// in one index.
bool slides_along(const StageGraph& graph, const Stage& stage, AxisId line) {
  bool found = false;
  schedule::for_each_read(stage.bodies[0], [&](const ir::TensorRead& read) {
    for (const ir::Expr& index : read.indices) {
      if (!ir::uses_var(index, graph.axes[line].value)) continue;
      found = found || std::ranges::any_of(stage.reduce, [&](AxisId axis) {
                return ir::uses_var(index, graph.axes[axis].value);
              });
    }
  });
  return found;
}

void write_window(const StageGraph& graph, StageId id, StepWriter& steps, const Values& values) {
  const Stage& stage = graph[id];
  const std::vector<AxisId> window = stage.reduce;
  std::vector<AxisId> outer = columns_of(stage);
  const AxisId column = outer.back();
  outer.pop_back();
  const auto [columns, lanes] = steps.split(id, column, values.get("lanes", 1));
  const auto [lines, line] = steps.split(id, outer.back(), values.get("lines", 1));
  outer.back() = lines;
  std::vector<AxisId> order = outer;
  order.push_back(columns);
  order.insert(order.end(), window.begin(), window.end());
  order.insert(order.end(), {line, lanes});
  steps.reorder(id, order);
  for (const AxisId axis : window)
    steps.unroll(id, axis);
  steps.unroll(id, line);
  steps.vectorize(id, lanes);
  if (values.get("parallel", 0) != 0) parallel_outer(graph, steps, id, outer);
}

}  // namespace

std::optional<Sketch> window_sketch(const Chooser& chooser, StageId id, bool may_be_parallel) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  const std::vector<AxisId> columns = columns_of(stage);
  if (columns.size() < 2 || stage.bodies.size() != 1 || has_dependent_extents(graph, id) ||
      has_indirect_reads(stage) || !is_small(graph, stage)) {
    return std::nullopt;
  }
  // A window that moves by a few elements, as of a pooling of stride 2, is shuffled together.
  if (!has_vectors_along_data(graph, id) && !is_near(graph, stage, columns.back()))
    return std::nullopt;
  const AxisId line = columns[columns.size() - 2];
  // Four lanes at least, so of wide types more than one of the shortest registers.
  const int64_t bytes =
      std::max<int64_t>(chooser.machine.vectors.bytes, 4 * size_of(stage.types[0]));
  const std::optional<int64_t> lanes = vector_factor(graph, id, columns.back(), bytes);
  const std::optional<int64_t> lines = constant_extent(graph, line);
  if (!lanes || (lines && *lines < kLines) || !slides_along(graph, stage, line)) {
    return std::nullopt;
  }
  return Sketch{
      .name = "unrolled windows",
      .parameters = {tile_parameter(graph, "lines", line, {1, 2, kLines, 8}, kLines),
                     lanes_parameter(graph, {columns.back()}, *lanes),
                     parallel_parameter(may_be_parallel && is_worth_sharing(chooser, id))},
      .write = [&graph, id](StepWriter& steps, const Values& values) {
        write_window(graph, id, steps, values);
      }};
}

}  // namespace kiln::autoschedule
