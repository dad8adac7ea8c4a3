// What lies across the vectors of a stage, for blocks of which it is turned:
//
//   Y[i, j] = Z[j, i]           squares of 16 x 16, along j as they lie and then along i
//   Y[i] = max[k](X[i, k])      the same of rows i, along k as they lie
#include "compiler/autoschedule/templates/turned_reads.h"

#include <algorithm>

#include "compiler/schedule/graph/places_of_tensor.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {

std::vector<const ir::TensorRead*> turned_reads(const StageGraph& graph, StageId id,
                                                AxisId across) {
  const Stage& stage = graph[id];
  const AxisId last = columns_of(stage).back();
  std::vector<const ir::TensorRead*> found;
  bool are_turnable = true;
  for (const ir::Expr& body : stage.bodies) {
    schedule::for_each_read(body, [&](const ir::TensorRead& read) {
      const std::optional<int64_t> distance = distance_along(graph, read, last);
      if (distance && (*distance == 0 || *distance == 1)) return;
      const bool is_turnable = is_contiguous_in(graph, read, across) &&
                               is_used_in(graph, read, last) &&
                               read.stage < graph.kernel->definition.stages.size() &&
                               graph[read.stage].attach.kind == schedule::Attach::Kind::Root;
      const schedule::TensorId tensor{read.stage, read.output};
      are_turnable =
          are_turnable && is_turnable && schedule::places_of_tensor(graph, id, tensor).is_one();
      const bool is_known = std::ranges::any_of(found, [&](const ir::TensorRead* other) {
        return schedule::TensorId{other->stage, other->output} == tensor;
      });
      if (!is_known) found.push_back(&read);
    });
  }
  if (!are_turnable) found.clear();
  return found;
}

void copy_turned(StepWriter& steps, StageId id, const ir::TensorRead& read,
                 const std::vector<AxisId>& layout, AxisId at, int64_t lanes) {
  const auto [copy, axes] = steps.cache_read({read.stage, read.output}, id, layout, "local");
  steps.compute_at(copy, id, at);
  const auto [lines, of_line] = steps.split(copy, axes[axes.size() - 2], lanes);
  const auto [squares, turned] = steps.split(copy, axes.back(), lanes);
  steps.reorder(copy, {squares, lines, turned, of_line});
  steps.unroll(copy, turned);
  steps.vectorize(copy, of_line);
}

}  // namespace kiln::autoschedule
