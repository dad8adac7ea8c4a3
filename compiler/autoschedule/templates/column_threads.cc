// Reductions down columns, of which there are mostly fewer than a GPU has threads: those of a block
// divide the rows, too.
//
//   S[j] = sum[k](X[k, j])
//     ->  blockIdx: 32 columns each; threads: 64 rows of 8 vectors
//           S.rf[64, 32] = sums of every 64th row, in registers, then in shared memory
//           S[32 columns] = sum[64](S.rf[..])
//
// Where that would be fewer blocks than multiprocessors a block has fewer columns and more rows: 32
// bytes of a row, which is what comes from memory at once, are the least.
#include "compiler/autoschedule/templates/column_threads.h"

#include <algorithm>

#include "compiler/autoschedule/recognise/sides.h"
#include "compiler/autoschedule/templates/gpu_machine.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {
namespace {

constexpr int64_t kThreads = 512;      // of a block
constexpr int64_t kMostVectors = 8;    // of a row: 128 bytes
constexpr int64_t kFewestVectors = 2;  // 32 bytes
constexpr int64_t kFewestRows = 64;    // with fewer, a thread a column is as good
constexpr int64_t kRowsOfThread = 8;   // so that sums in shared memory are little of the work

struct Columns {
  int64_t lanes = 1;    // of a vector
  int64_t vectors = 1;  // of a row of a block
  int64_t rows = 1;     // that the block's threads reduce at once
};

Columns columns_for(const Chooser& chooser, StageId id) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  int64_t bytes = size_of(stage.types[0]);
  schedule::for_each_read(stage.bodies[0], [&](const ir::TensorRead& read) {
    if (is_used_in(graph, read, stage.data.back()))
      bytes = std::max<int64_t>(bytes, size_of(read.type.element));
  });
  const std::optional<int64_t> length = constant_extent(graph, stage.data.back());
  Columns columns;
  columns.lanes = std::max<int64_t>(kVectorBytesOfThread / bytes, 1);
  if (!length || *length % columns.lanes != 0) columns.lanes = 1;
  columns.vectors = columns.lanes > 1 ? kMostVectors : ir::kWarp;
  int64_t others = 1;
  for (size_t d = 0; d + 1 < stage.data.size(); ++d)
    others *= std::clamp<int64_t>(constant_extent(graph, stage.data[d]).value_or(1), 1, 1 << 16);
  const int64_t multiprocessors = gpu_machine(chooser.arch).multiprocessors;
  // A few multiprocessors may have nothing to do.
  while (length && columns.lanes > 1 && columns.vectors > kFewestVectors &&
         *length / (columns.vectors * columns.lanes) * others < multiprocessors * 3 / 4)
    columns.vectors /= 2;
  columns.rows = kThreads / columns.vectors;
  // The rows of one axis are divided.
  const int64_t rows = constant_extent(graph, stage.reduce[0]).value_or(kThreads * kRowsOfThread);
  while (columns.rows > kRowsOfThread && rows < columns.rows * kRowsOfThread)
    columns.rows /= 2;
  return columns;
}

void write_columns(const StageGraph& graph, StageId id, const Columns& columns,
                   const std::optional<Epilogue>& epilogue, StepWriter& steps) {
  const Stage& stage = graph[id];
  const AxisId divided = steps.split(id, stage.reduce[0], columns.rows).second;
  const auto [parts, axes] = steps.rfactor(id, divided);
  const StageId stored = epilogue ? epilogue->stage : id;
  std::vector<AxisId> blocks = axes_for(graph, id, epilogue, stage.data);
  const auto [tiles, column] = steps.split(stored, blocks.back(), columns.vectors * columns.lanes);
  blocks.back() = tiles;
  if (epilogue) steps.reorder(stored, joined({blocks, {column}}));
  const AxisId block = steps.fuse(stored, blocks);
  steps.bind(stored, block, "blockIdx.x");
  steps.bind(stored, column, "threadIdx.x");
  if (epilogue) {
    steps.set_scope(id, "local");
    steps.compute_at(id, stored, column);
  }
  const size_t data = stage.data.size() + 1;
  // The sums of a thread, then their copy in shared memory.
  const auto [sums, sums_axes] = steps.cache_write(parts, "local");
  steps.compute_at(parts, stored, block);
  const std::vector<AxisId> threads(axes.begin(), axes.begin() + static_cast<long>(data));
  const AxisId thread = steps.fuse_vectors(parts, threads, columns.lanes);
  steps.bind(parts, thread, "threadIdx.x");
  steps.compute_at(sums, parts, thread);
  if (columns.lanes == 1) return;
  const AxisId lane = sums_axes[data - 1];
  std::vector<AxisId> order(sums_axes.begin() + static_cast<long>(data), sums_axes.end());
  order.push_back(lane);
  steps.reorder(sums, order);
  steps.vectorize(sums, lane);
}

}  // namespace

bool is_column_reduction(const Chooser& chooser, StageId id) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  if (stage.kind != Stage::Kind::Compute || !stage.is_reduction() || stage.data.empty() ||
      stage.bodies.size() != 1 || stage.time_dimension >= 0 || stage.role.cell_of >= 0 ||
      !stage.conditions.empty() || !may_reassociate(chooser, id) ||
      has_dependent_extents(graph, id) || has_indirect_reads(stage) ||
      !reductions_inside(graph, id).empty()) {
    return false;
  }
  const AxisId last = stage.data.back();
  if (constant_extent_of(graph, stage.reduce).value_or(kFewestRows) < kFewestRows ||
      constant_extent(graph, last).value_or(ir::kWarp) < ir::kWarp) {
    return false;
  }
  bool found = false;
  bool are_along = true;
  schedule::for_each_read(stage.bodies[0], [&](const ir::TensorRead& read) {
    if (!is_used_in(graph, read, last)) return;
    found = true;
    const auto is_read = [&](AxisId axis) { return is_used_in(graph, read, axis); };
    are_along = are_along && read.indices.back() == ir::Expr(graph.axes[last].value) &&
                is_contiguous_in(graph, read, last) && std::ranges::all_of(stage.reduce, is_read) &&
                std::ranges::all_of(stage.data, is_read);
  });
  return found && are_along;
}

std::vector<Sketch> column_thread_sketches(const Chooser& chooser, StageId id,
                                           const std::optional<Epilogue>& epilogue) {
  if (!is_column_reduction(chooser, id)) return {};
  const Columns columns = columns_for(chooser, id);
  return {
      {.name = "rows divided among threads",
       .parameters = {},
       .write = [&graph = chooser.graph, id, columns, epilogue](StepWriter& steps, const Values&) {
         write_columns(graph, id, columns, epilogue, steps);
       }}};
}

}  // namespace kiln::autoschedule
