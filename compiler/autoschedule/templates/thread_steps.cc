// Steps for CUDA: one loop over all that is independent, cut into blocks of threads. Where there
// are enough elements for all threads, each has neighbours of 128 bits, which move at once, and of
// functions several such vectors, as their constants and what is computed of places are the same
// for all of them. Updates of a scatter are independent too where each is in one piece.
#include <algorithm>
#include <tuple>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/recognise/sides.h"
#include "compiler/autoschedule/templates/contraction_loops.h"
#include "compiler/autoschedule/templates/stage_schedules.h"
#include "compiler/schedule/graph/reads.h"
#include "compiler/schedule/graph/scatters.h"

namespace kiln::autoschedule {
namespace {

constexpr int64_t kThreads = 1024;     // of a multiprocessor that has enough to do
constexpr int64_t kMostUnrolled = 32;  // steps of a window
// Of a thread. A gelu has 30.8 instructions an element with one, and 27 with four.
constexpr int64_t kVectorsOfFunctions = 4;

}  // namespace

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

ThreadElements elements_of_thread(const StageGraph& graph, StageId id, const GpuMachine& machine) {
  const Stage& stage = graph[id];
  const bool is_plain = stage.kind == Stage::Kind::Compute && !stage.is_reduction() &&
                        stage.time_dimension < 0 && stage.role.cell_of < 0;
  if (!is_plain) return {};
  const std::vector<AxisId> columns = columns_of(stage);
  if (columns.empty()) return {};
  int64_t bytes = 1;
  for (const ir::Expr& body : stage.bodies)
    bytes = std::max<int64_t>(bytes, size_of(body->type.element));
  const int64_t lanes = std::max<int64_t>(kVectorBytesOfThread / bytes, 1);
  const int64_t busy = kThreads * machine.multiprocessors;
  const int64_t enough = busy * lanes * kVectorsOfFunctions;
  int64_t elements = 1;
  for (const AxisId axis : columns) {
    const std::optional<int64_t> extent = constant_extent(graph, axis);
    if (!extent || *extent <= 0) return {};
    const bool is_whole = axis != columns.back() || *extent % lanes == 0;
    if (!is_whole) return {};
    elements = std::min(elements, enough) * *extent;
  }
  if (elements / lanes < busy) return {};
  const bool has_several = lanes > 1 && elements >= enough && has_functions(graph, id);
  return {.lanes = lanes, .vectors = has_several ? kVectorsOfFunctions : 1};
}

int64_t lanes_of_thread(const StageGraph& graph, StageId id, const GpuMachine& machine) {
  return elements_of_thread(graph, id, machine).lanes;
}

void bind_elements(const StageGraph& graph, StepWriter& steps, StageId id, int64_t threads,
                   const ThreadElements& elements) {
  const Stage& stage = graph[id];
  const std::vector<AxisId> columns = columns_of(stage);
  if (columns.empty()) return;
  const AxisId all = steps.fuse_vectors(id, columns, elements.lanes);
  auto [block, thread] = steps.split(id, all, threads * elements.vectors);
  if (elements.vectors > 1) {
    // Threads side by side have vectors side by side each time.
    const auto [vector, each] = steps.split(id, thread, threads);
    thread = each;
    steps.reorder(id, {block, thread, vector});
    steps.unroll(id, vector);
  }
  steps.bind(id, block, "blockIdx.x");
  steps.bind(id, thread, "threadIdx.x");
}

std::optional<WindowLines> lines_of_thread(const StageGraph& graph, StageId id,
                                           const GpuMachine& machine) {
  const Stage& stage = graph[id];
  if (!stage.is_reduction() || stage.data.size() < 2) return std::nullopt;
  const auto slides_along = [&](AxisId axis) {
    bool found = false;
    schedule::for_each_read(stage.bodies[0], [&](const ir::TensorRead& read) {
      for (const ir::Expr& index : read.indices) {
        const auto is_used = [&](AxisId each) {
          return ir::uses_var(index, graph.axes[each].value);
        };
        found = found || (is_used(axis) && std::ranges::any_of(stage.reduce, is_used));
      }
    });
    return found;
  };
  const std::optional<int64_t> elements = constant_extent_of(graph, stage.data);
  if (!elements || constant_extent_of(graph, stage.reduce).value_or(kMostUnrolled) >= kMostUnrolled)
    return std::nullopt;
  for (size_t d = stage.data.size() - 1; d-- > 0;) {
    if (!slides_along(stage.data[d])) continue;
    for (const int64_t lines : {4, 7, 5, 3, 2}) {
      const bool is_whole = constant_extent(graph, stage.data[d]).value_or(1) % lines == 0;
      if (is_whole && *elements / lines >= kThreads * machine.multiprocessors)
        return WindowLines{d, lines};
    }
    return std::nullopt;
  }
  return std::nullopt;
}

void bind_results(const StageGraph& graph, StepWriter& steps, StageId id,
                  const std::optional<Epilogue>& epilogue, const std::optional<WindowLines>& lines,
                  int64_t threads) {
  const StageId stored = epilogue ? epilogue->stage : id;
  StageId sums = id;
  std::vector<AxisId> axes = joined({graph[id].data, graph[id].reduce});
  if (epilogue) {
    steps.set_scope(id, "local");
  } else if (lines) {
    std::tie(sums, axes) = steps.cache_write(id, "local");
  }
  std::vector<AxisId> columns = columns_of(graph[stored]);
  if (columns.empty()) return;
  std::optional<AxisId> own;
  if (lines) {
    const AxisId axis = axes_for(graph, id, epilogue, graph[id].data)[lines->dimension];
    AxisId& column = *std::ranges::find(columns, axis);
    std::tie(column, own) = steps.split(stored, axis, lines->count);
    steps.reorder(stored, joined({columns, {*own}}));
    steps.unroll(stored, *own);
  }
  const auto [block, thread] = steps.split(stored, steps.fuse(stored, columns), threads);
  steps.bind(stored, block, "blockIdx.x");
  steps.bind(stored, thread, "threadIdx.x");
  if (sums != stored) steps.compute_at(sums, stored, thread);
  if (!lines) return;
  const AxisId of_sums = axes[lines->dimension];
  const std::vector<AxisId> reduce(axes.begin() + static_cast<long>(graph[id].data.size()),
                                   axes.end());
  steps.reorder(sums, joined({reduce, {of_sums}}));
  for (const AxisId axis : joined({reduce, {of_sums}}))
    steps.unroll(sums, axis);
}

AxisId bind_results_of_block(StepWriter& steps, StageId id, const std::optional<Epilogue>& epilogue,
                             const std::vector<AxisId>& blocks,
                             const std::vector<AxisId>& results) {
  const StageId stored = epilogue ? epilogue->stage : id;
  steps.reorder(stored, joined({blocks, results}));
  const AxisId block = steps.fuse(stored, blocks);
  const AxisId result = steps.fuse(stored, results);
  steps.bind(stored, block, "blockIdx.x");
  steps.bind(stored, result, "threadIdx.x");
  if (epilogue) {
    steps.set_scope(id, "local");
    steps.compute_at(id, stored, result);
  }
  return block;
}

}  // namespace kiln::autoschedule
