// Steps for CUDA: one loop over all that is independent, cut into blocks of threads.
#include "compiler/autoschedule/templates/stage_schedules.h"
#include "compiler/schedule/graph/scatters.h"

namespace kiln::autoschedule {

void bind_scatter(const StageGraph& graph, StepWriter& steps, StageId id, int64_t threads) {
  const Stage& stage = graph[id];
  std::vector<AxisId> apart;
  std::vector<AxisId> serial;
  for (const AxisId axis : stage.data) {
    const bool is_apart = schedule::tells_elements_apart(graph, id, axis);
    (is_apart ? apart : serial).push_back(axis);
  }
  if (apart.empty()) return;
  std::vector<AxisId> order = apart;
  order.insert(order.end(), serial.begin(), serial.end());
  if (order != stage.data) steps.reorder(id, order);
  const AxisId all = steps.fuse(id, apart);
  const auto [block, thread] = steps.split(id, all, threads);
  steps.bind(id, block, "blockIdx.x");
  steps.bind(id, thread, "threadIdx.x");
}

void bind_elements(const StageGraph& graph, StepWriter& steps, StageId id, int64_t threads) {
  const Stage& stage = graph[id];
  const std::vector<AxisId> columns = columns_of(stage);
  if (columns.empty()) return;
  const AxisId all = steps.fuse(id, columns);
  const auto [block, thread] = steps.split(id, all, threads);
  steps.bind(id, block, "blockIdx.x");
  steps.bind(id, thread, "threadIdx.x");
}

}  // namespace kiln::autoschedule
