// Reductions whose order is what they say, as of a reducer of one's own or with `strict`:
//
//   I[i], V[i] = argmax[k](k, X[i, k])
//     ->  16 rows are the lanes of vectors; of 64 columns of them squares are turned in registers
//
// The place of the largest of each of 4096 rows of 1000 takes 0.9 ms on a core of a Zen 4, and 5.5
// row by row.
#include "compiler/autoschedule/templates/turned_rows.h"

#include <algorithm>

#include "compiler/autoschedule/templates/parameters.h"
#include "compiler/autoschedule/templates/stage_cycles.h"
#include "compiler/autoschedule/templates/turned_reads.h"

namespace kiln::autoschedule {
namespace {

// Columns of a block, whose copy stays in L1: 4 KiB of 16 rows of floats.
constexpr int64_t kColumns = 64;

}  // namespace

std::optional<Sketch> turned_rows_sketch(const Chooser& chooser, StageId id, bool may_be_parallel) {
  const StageGraph& graph = chooser.graph;
  if (!is_plain_reduction_of_values(graph, id) || graph[id].reduce.size() != 1 ||
      graph[id].data.empty())
    return std::nullopt;
  const AxisId row = graph[id].data.back();
  const AxisId column = graph[id].reduce[0];
  const std::vector<const ir::TensorRead*> reads = turned_reads(graph, id, column);
  if (reads.empty()) return std::nullopt;
  const int64_t element = size_of(reads[0]->type.element);
  const int64_t lanes = std::min(chooser.machine.vectors.bytes / element, kMostLanesOfSquare);
  const bool are_alike = std::ranges::all_of(
      reads, [&](const ir::TensorRead* read) { return size_of(read->type.element) == element; });
  // Of fewer rows than half of the lanes most work is for nothing; and of sizes that a call brings,
  // what is left at both ends takes three times as long to compile.
  const auto has = [&](AxisId axis, int64_t least) {
    return constant_extent(graph, axis).value_or(0) >= least;
  };
  if (!are_alike || lanes < 4 || !has(row, lanes / 2) || !has(column, lanes)) return std::nullopt;
  return Sketch{
      .name = "rows side by side",
      .parameters = {{"columns", {lanes, kColumns / 2, kColumns, 2 * kColumns}, kColumns},
                     parallel_parameter(may_be_parallel && is_worth_sharing(chooser, id))},
      .write = [&graph, id, row, column, reads, lanes](StepWriter& steps, const Values& values) {
        std::vector<AxisId> outer = graph[id].data;
        const std::pair<AxisId, AxisId> parts = steps.split(id, row, lanes);
        const AxisId rows = parts.first;
        const AxisId lane = parts.second;
        const auto [blocks, of_block] = steps.split(id, column, values.get("columns", kColumns));
        outer.back() = rows;
        std::vector<AxisId> order = outer;
        order.insert(order.end(), {blocks, of_block, lane});
        steps.reorder(id, order);
        steps.vectorize(id, lane);
        if (values.get("parallel", 0) != 0) parallel_outer(graph, steps, id, outer);
        for (const ir::TensorRead* read : reads) {
          std::vector<AxisId> layout = outer;
          std::erase_if(
              layout, [&](AxisId axis) { return axis != rows && !is_used_in(graph, *read, axis); });
          layout.insert(layout.end(), {blocks, of_block, lane});
          copy_turned(steps, id, *read, layout, blocks, lanes);
        }
      }};
}

}  // namespace kiln::autoschedule
