// Elements in groups that are shorter than a vector, each member of which is computed another way:
//
//   C[i, p] = select(p == 0, A[i, 0]*B[i, 0] - A[i, 1]*B[i, 1], A[i, 0]*B[i, 1] + A[i, 1]*B[i, 0])
//     ->  32 of C[.., 0], 32 of C[.., 1], which are stored in turns
//
// Half a million of these take 130 us on a core of a Zen 4, and 1140 one by one. Loads and stores
// that lie two or four elements apart are shuffles of whole vectors (codegen/llvm_interleave.cc).
#include "compiler/autoschedule/templates/group_sketch.h"

#include <algorithm>

#include "compiler/autoschedule/templates/parameters.h"
#include "compiler/autoschedule/templates/stage_cycles.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {
namespace {

constexpr int64_t kLargestGroup = 4;  // whose members shuffles bring together

/// Whether vectors along the axis are one, or members of groups, of all that is read.
bool reads_groups_along(const StageGraph& graph, StageId id, AxisId axis) {
  bool are_groups = true;
  for (const ir::Expr& body : schedule::expanded_bodies(graph, id)) {
    schedule::for_each_read(body, [&](const ir::TensorRead& read) {
      const std::optional<int64_t> apart = distance_along(graph, read, axis);
      are_groups = are_groups && apart && *apart >= 0 && *apart <= kLargestGroup && *apart != 3;
    });
  }
  return are_groups;
}

}  // namespace

std::optional<Sketch> group_sketch(const Chooser& chooser, StageId id, bool may_be_parallel,
                                   size_t dimensions) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  if (stage.data.size() < dimensions + 2 || stage.time_dimension >= 0 ||
      !reductions_inside(graph, id).empty())
    return std::nullopt;
  const AxisId member = stage.data.back();
  const AxisId along = stage.data[stage.data.size() - 2];
  const std::optional<int64_t> members = constant_extent(graph, member);
  const std::optional<int64_t> lanes = line_factor(graph, id, {along});
  if ((members != 2 && members != kLargestGroup) || !lanes ||
      has_indirect_reads_along(graph, stage, along) || !reads_groups_along(graph, id, along))
    return std::nullopt;
  return Sketch{
      .name = "groups",
      .parameters = {lanes_parameter(graph, {along}, *lanes),
                     parallel_parameter(may_be_parallel && is_worth_sharing(chooser, id))},
      .write = [&graph, id, along, member](StepWriter& steps, const Values& values) {
        std::vector<AxisId> outer = graph[id].data;
        outer.resize(outer.size() - 2);
        const auto [tiles, lane] = steps.split(id, along, values.get("lanes", 1));
        outer.push_back(tiles);
        steps.reorder(id, {tiles, member, lane});
        steps.unroll(id, member);
        steps.vectorize(id, lane);
        if (values.get("parallel", 0) != 0) parallel_outer(graph, steps, id, outer);
      }};
}

}  // namespace kiln::autoschedule
