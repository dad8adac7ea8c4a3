// Sketches of reductions that are no matrix product:
//
//   S[j] = sum[i](X[i, j])         columns in vectors, some rows at once, blocks that fit L1
//   S[i] = sum[j](X[i, j])         vectors along j, lanes added at the end of a row
#include "compiler/autoschedule/templates/paired_columns.h"
#include "compiler/autoschedule/templates/paired_rows.h"
#include "compiler/autoschedule/templates/reduction_numbers.h"
#include "compiler/autoschedule/templates/rows_as_lanes.h"
#include "compiler/autoschedule/templates/stage_cycles.h"
#include "compiler/autoschedule/templates/stage_schedules.h"
#include "compiler/autoschedule/templates/turned_rows.h"

namespace kiln::autoschedule {
namespace {

void write_reduction(const StageGraph& graph, StageId id,
                     const std::optional<ReductionVectors>& vectors, StepWriter& steps,
                     const Values& values) {
  const Stage& stage = graph[id];
  std::vector<AxisId> outer = columns_of(stage);
  if (vectors) {
    const int64_t factor = values.get("lanes", vectors->lanes);
    AxisId columns = vectors->axis;
    const bool in_blocks = values.get("columns", 0) > factor;
    if (in_blocks) {
      const auto [blocks, column] = steps.split(id, columns, values.get("columns", 0));
      outer.back() = blocks;
      columns = column;
    }
    const auto [tiles, lanes] = steps.split(id, columns, factor);
    if (vectors->along_data) {
      std::vector<AxisId> order = stage.reduce;
      if (in_blocks) order.push_back(tiles);
      if (const int64_t rows = values.get("rows at once", 1); in_blocks && rows > 1) {
        const auto [groups, row] = steps.split(id, order[stage.reduce.size() - 1], rows);
        order[stage.reduce.size() - 1] = groups;
        order.push_back(row);
        steps.unroll(id, row);
      }
      order.push_back(lanes);
      steps.reorder(id, order);
      if (!in_blocks) outer.back() = tiles;
    } else if (const int64_t rows = values.get("rows at once", 1); rows > 1) {
      const auto [groups, row] = steps.split(id, outer.back(), rows);
      outer.back() = groups;
      std::vector<AxisId> order = outer;
      order.insert(order.end(), stage.reduce.begin(), stage.reduce.end() - 1);
      order.insert(order.end(), {tiles, row, lanes});
      steps.reorder(id, order);
      steps.unroll(id, row);
    }
    steps.vectorize(id, lanes);
  }
  if (values.get("parallel", 0) != 0) parallel_outer(graph, steps, id, outer);
}

}  // namespace

std::vector<Sketch> reduction_sketches(const Chooser& chooser, StageId id, bool may_be_parallel,
                                       size_t dimensions) {
  const StageGraph& graph = chooser.graph;
  const bool is_long = is_worth_sharing(chooser, id);
  const bool is_shared = may_be_parallel && is_long;
  const bool has_columns = !columns_of(graph[id]).empty();
  const std::optional<ReductionVectors> vectors = vectors_of_reduction(chooser, id, is_long);
  const bool is_along_sum = vectors && !vectors->along_data;
  std::vector<Sketch> sketches;
  const std::optional<Pairs> pairs = dimensions == 0 ? pairs_of(chooser, id) : std::nullopt;
  if (pairs) {
    std::optional<PairSketch> best = paired_columns_sketch(chooser, id, *pairs, may_be_parallel);
    std::optional<PairSketch> rows;
    if (is_along_sum) rows = paired_rows_sketch(chooser, id, *pairs, may_be_parallel);
    // Sums along vectors have an order of their own: no other sketch has it.
    if (rows && (!best || rows->cycles < best->cycles)) return {std::move(rows->sketch)};
    if (best && is_along_sum) return {std::move(best->sketch)};
    if (best) sketches.push_back(std::move(best->sketch));
  }
  Sketch sketch{.name = "reduction", .parameters = {}, .write = {}};
  // As many partial results as lanes: more or fewer would change the order.
  if (vectors && vectors->along_data) {
    sketch.name = "vectors along data";
    sketch.parameters.push_back(lanes_parameter(graph, {vectors->axis}, vectors->lanes));
    if (const int64_t columns = vectors->columns; columns > 0) {
      sketch.parameters.push_back({"columns", {0, columns / 2, columns, columns * 2}, columns});
      sketch.parameters.push_back(rows_down_parameter(chooser, id));
    }
  } else if (vectors) {
    sketch.name = "vectors reduced";
    const int64_t tasks = is_shared ? chooser.machine.cores : 1;
    if (has_columns) {
      if (auto rows = rows_along_parameter(chooser, id, *vectors, tasks))
        sketch.parameters.push_back(*std::move(rows));
    }
  }
  if (has_columns) sketch.parameters.push_back(parallel_parameter(is_shared));
  sketch.write = [&graph, id, vectors](StepWriter& steps, const Values& values) {
    write_reduction(graph, id, vectors, steps, values);
  };
  if (!vectors && dimensions == 0) {
    if (std::optional<Sketch> turned = turned_rows_sketch(chooser, id, may_be_parallel))
      sketches.push_back(*std::move(turned));
    if (std::optional<Sketch> rows = rows_as_lanes_sketch(chooser, id, may_be_parallel))
      sketches.push_back(*std::move(rows));
  }
  sketches.push_back(std::move(sketch));
  return sketches;
}

}  // namespace kiln::autoschedule
