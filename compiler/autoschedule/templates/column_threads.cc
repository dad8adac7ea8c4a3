// Reductions down columns, of which there are mostly fewer than a GPU has threads: those of a block
// divide the rows, too.
//
//   S[j] = sum[k](X[k, j])
//     ->  blockIdx: 32 columns each; threads: 64 rows of 8 vectors
//           S.rf[64, 32] = sums of every 64th row, in registers, then in shared memory
//           S[32 columns] = sum[64](S.rf[..])
//
// How many of each there are is said by column_block.cc.
#include "compiler/autoschedule/templates/column_threads.h"

#include <algorithm>
#include <tuple>

#include "compiler/autoschedule/recognise/sides.h"
#include "compiler/autoschedule/templates/column_block.h"
#include "compiler/autoschedule/templates/contraction_loops.h"
#include "compiler/autoschedule/templates/stage_schedules.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {
namespace {

constexpr int64_t kFewestRows = 64;  // with fewer, a thread a column is as good
constexpr int64_t kMostFew = 16;     // sums that a thread has of each column

void write_columns(const StageGraph& graph, StageId id, const ColumnBlock& columns,
                   const std::optional<Epilogue>& epilogue, StepWriter& steps) {
  const Stage& stage = graph[id];
  const AxisId divided = steps.split(id, columns.divided, columns.rows).second;
  const auto [parts, axes] = steps.rfactor(id, divided);
  const StageId stored = epilogue ? epilogue->stage : id;
  const auto is_few = [&](AxisId axis) { return columns.is_few(axis); };
  std::vector<AxisId> others = stage.data;
  std::erase_if(others, is_few);
  std::vector<AxisId> blocks = axes_for(graph, id, epilogue, others);
  const std::vector<AxisId> few = axes_for(graph, id, epilogue, columns.few);
  const auto [tiles, column] = steps.split(stored, blocks.back(), columns.vectors * columns.lanes);
  blocks.back() = tiles;
  const AxisId block = bind_results_of_block(steps, id, epilogue, blocks, joined({few, {column}}));
  // The sums of a thread, then their copy in shared memory.
  const auto [sums, sums_axes] = steps.cache_write(parts, "local");
  steps.compute_at(parts, stored, block);
  // Of the axes of the parts, or of their sums: the part, the data but what is few, and that.
  const auto axes_as = [&](const std::vector<AxisId>& all, bool wants_few) {
    std::vector<AxisId> wanted;
    if (!wants_few) wanted.push_back(all[0]);
    for (size_t d = 0; d < stage.data.size(); ++d)
      if (is_few(stage.data[d]) == wants_few) wanted.push_back(all[d + 1]);
    return wanted;
  };
  const std::vector<AxisId> few_of_parts = axes_as(axes, true);
  steps.reorder(parts, joined({axes_as(axes, false), few_of_parts}));
  std::vector<AxisId> of_thread = axes_as(axes, false);
  std::optional<AxisId> lane;
  if (columns.lanes > 1)
    std::tie(of_thread.back(), lane) = steps.split(parts, of_thread.back(), columns.lanes);
  const AxisId thread = steps.fuse(parts, of_thread);
  steps.bind(parts, thread, "threadIdx.x");
  if (lane) {
    steps.reorder(parts, joined({{thread}, few_of_parts, {*lane}}));
    steps.vectorize(parts, *lane);
  }
  steps.compute_at(sums, parts, thread);
  const std::vector<AxisId> few_of_sums = axes_as(sums_axes, true);
  for (const AxisId axis : few_of_parts)
    steps.unroll(parts, axis);
  for (const AxisId axis : few_of_sums)
    steps.unroll(sums, axis);
  const AxisId last = axes_as(sums_axes, false).back();
  std::vector<AxisId> order(sums_axes.begin() + static_cast<long>(stage.data.size() + 1),
                            sums_axes.end());
  steps.reorder(sums, joined({order, few_of_sums, {last}}));
  if (columns.lanes > 1) steps.vectorize(sums, last);
}

/// Whether columns that are fewer than a warp has threads are better divided than one thread each.
bool gains_from_columns(const Chooser& chooser, StageId id) {
  const StageGraph& graph = chooser.graph;
  return constant_extent_of(graph, joined({graph[id].data, graph[id].reduce})) &&
         column_cycles(chooser, id) < element_cycles(chooser, id);
}

}  // namespace

bool is_column_reduction(const Chooser& chooser, StageId id) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  if (!is_plain_reduction(graph, id) || stage.data.empty() || !may_reassociate(chooser, id))
    return false;
  const AxisId last = stage.data.back();
  if (constant_extent_of(graph, stage.reduce).value_or(kFewestRows) < kFewestRows) return false;
  const std::vector<AxisId> few = few_of_columns(graph, stage);
  if (constant_extent_of(graph, few).value_or(kMostFew + 1) > kMostFew) return false;
  bool found = false;
  bool are_along = true;
  schedule::for_each_read(stage.bodies[0], [&](const ir::TensorRead& read) {
    if (!is_used_in(graph, read, last)) return;
    found = true;
    const auto is_read = [&](AxisId axis) { return is_used_in(graph, read, axis); };
    are_along = are_along && read.indices.back() == ir::Expr(graph.axes[last].value) &&
                is_contiguous_in(graph, read, last) && std::ranges::all_of(stage.reduce, is_read) &&
                std::ranges::all_of(stage.data, [&](AxisId axis) {
                  return is_read(axis) || std::ranges::find(few, axis) != few.end();
                });
  });
  const bool is_narrow = constant_extent(graph, last).value_or(ir::kWarp) < ir::kWarp;
  return found && are_along && (!is_narrow || gains_from_columns(chooser, id));
}

std::optional<SumSplit> split_of_columns(const Chooser& chooser, StageId id) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  if (!is_column_reduction(chooser, id) ||
      !constant_extent_of(graph, joined({stage.data, stage.reduce})))
    return std::nullopt;
  return best_split(chooser, id, *longest_axis(graph, stage.reduce), equal_lengths(kFewestRows, 1),
                    [&](int64_t parts) { return column_cycles(chooser, id, parts); });
}

std::vector<Sketch> column_thread_sketches(const Chooser& chooser, StageId id,
                                           const std::optional<Epilogue>& epilogue) {
  if (!is_column_reduction(chooser, id)) return {};
  const ColumnBlock columns = column_block_of(chooser, id);
  return {
      {.name = "rows divided among threads",
       .parameters = {},
       .write = [&graph = chooser.graph, id, columns, epilogue](StepWriter& steps, const Values&) {
         write_columns(graph, id, columns, epilogue, steps);
       }}};
}

}  // namespace kiln::autoschedule
