// Steps for CUDA: one loop over all that is independent, cut into blocks of threads. Where there
// are enough elements for all threads, each has neighbours of 128 bits, which move at once. Updates
// of a scatter are independent too where each is in one piece.
#include <algorithm>

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
  if (schedule::is_in_one_piece(stage) && is_int(stage.types[0])) apart = stage.data;
  if (apart.empty()) return;
  if (apart.size() == stage.data.size()) serial.clear();
  std::vector<AxisId> order = apart;
  order.insert(order.end(), serial.begin(), serial.end());
  if (order != stage.data) steps.reorder(id, order);
  const AxisId all = steps.fuse(id, apart);
  const auto [block, thread] = steps.split(id, all, threads);
  steps.bind(id, block, "blockIdx.x");
  steps.bind(id, thread, "threadIdx.x");
}

int64_t lanes_of_thread(const StageGraph& graph, StageId id, const GpuMachine& machine) {
  constexpr int64_t kThreads = 1024;  // of a multiprocessor that has enough to do
  const Stage& stage = graph[id];
  const bool is_plain = stage.kind == Stage::Kind::Compute && !stage.is_reduction() &&
                        stage.time_dimension < 0 && stage.role.cell_of < 0;
  if (!is_plain) return 1;
  const std::vector<AxisId> columns = columns_of(stage);
  if (columns.empty()) return 1;
  int64_t bytes = 1;
  for (const ir::Expr& body : stage.bodies)
    bytes = std::max<int64_t>(bytes, size_of(body->type.element));
  const int64_t lanes = std::max<int64_t>(kVectorBytesOfThread / bytes, 1);
  int64_t threads = 1;
  for (const AxisId axis : columns) {
    const std::optional<int64_t> extent = constant_extent(graph, axis);
    if (!extent || *extent <= 0) return 1;
    const bool is_whole = axis != columns.back() || *extent % lanes == 0;
    if (!is_whole) return 1;
    threads = std::min(threads, kThreads * machine.multiprocessors) * *extent;
  }
  return threads / lanes >= kThreads * machine.multiprocessors ? lanes : 1;
}

void bind_elements(const StageGraph& graph, StepWriter& steps, StageId id, int64_t threads,
                   int64_t lanes) {
  const Stage& stage = graph[id];
  const std::vector<AxisId> columns = columns_of(stage);
  if (columns.empty()) return;
  const AxisId all = steps.fuse_vectors(id, columns, lanes);
  const auto [block, thread] = steps.split(id, all, threads);
  steps.bind(id, block, "blockIdx.x");
  steps.bind(id, thread, "threadIdx.x");
}

}  // namespace kiln::autoschedule
