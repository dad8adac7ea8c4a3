// A bias, a function, a cast: what follows element by element on a sum, which can be computed where
// the sum still is in registers.
//
//   S[i, j] = sum[k](..); Y[j, i] = max(S[i, j] + B[j], 0)  ->  Y, whose axes i and j are those of
//   S
#include "compiler/autoschedule/recognise/epilogue.h"

#include <algorithm>

#include "compiler/autoschedule/recognise/side_by_side.h"
#include "compiler/ir/equal.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {
namespace {

/// The axes of the reader that the indices are, all of them, each once; nothing else.
std::optional<std::vector<AxisId>> axes_of_read(const StageGraph& graph, const Stage& reader,
                                                const ir::TensorRead& read) {
  std::vector<AxisId> axes;
  for (const ir::Expr& index : read.indices) {
    const std::optional<AxisId> axis = axis_of(graph, reader.data, index);
    if (!axis || std::ranges::find(axes, *axis) != axes.end()) return std::nullopt;
    axes.push_back(*axis);
  }
  return axes.size() == reader.data.size() ? std::optional(axes) : std::nullopt;
}

bool have_same_extents(const StageGraph& graph, const Stage& stage,
                       const std::vector<AxisId>& axes) {
  return std::ranges::equal(stage.data, axes, [&](AxisId a, AxisId b) {
    return ir::equal_trees(graph.axes[a].extent, graph.axes[b].extent);
  });
}

}  // namespace

std::vector<AxisId> axes_for(const StageGraph& graph, StageId stage,
                             const std::optional<Epilogue>& epilogue,
                             const std::vector<AxisId>& axes) {
  if (!epilogue) return axes;
  const std::vector<AxisId>& data = graph[stage].data;
  std::vector<AxisId> result;
  for (const AxisId axis : axes)
    result.push_back(
        epilogue->axes[static_cast<size_t>(std::ranges::find(data, axis) - data.begin())]);
  return result;
}

std::optional<Epilogue> epilogue_of(const StageGraph& graph, StageId id) {
  if (!is_open(graph, id) || graph.has_parameter(id)) return std::nullopt;
  const std::vector<StageId> readers = schedule::readers_of(graph, id);
  if (readers.size() != 1 || !is_free(graph, readers[0])) return std::nullopt;
  const Stage& reader = graph[readers[0]];
  if (reader.is_reduction() || reader.time_dimension >= 0 || reader.bodies.size() != 1 ||
      reader.data.empty() || !reductions_inside(graph, readers[0]).empty() ||
      has_indirect_reads(reader)) {
    return std::nullopt;
  }
  std::optional<Epilogue> found;
  bool agree = true;
  schedule::for_each_read(reader.bodies[0], [&](const ir::TensorRead& read) {
    if (read.stage != id) return;
    const auto axes = axes_of_read(graph, reader, read);
    agree = agree && axes && (!found || found->axes == *axes);
    if (agree) found = Epilogue{.stage = readers[0], .axes = *axes};
  });
  if (!agree || !found || found->axes.back() != reader.data.back() ||
      !have_same_extents(graph, graph[id], found->axes)) {
    return std::nullopt;
  }
  return found;
}

}  // namespace kiln::autoschedule
