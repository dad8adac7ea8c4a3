// Sketches of elements that read tensors across, along another axis than that of their vectors.
//
//   Y[i, j] = X[i, j] + Z[j, i]    blocks of 16 x 16, for which squares of Z are turned in
//   registers
//   Y[n, c, h, w] = X[n, h, w, c]  the same of columns h and w, which are one axis of both
#include "compiler/autoschedule/templates/across_sketches.h"

#include <algorithm>
#include <limits>

#include "compiler/autoschedule/recognise/sides.h"
#include "compiler/autoschedule/templates/across_cost.h"
#include "compiler/autoschedule/templates/across_line.h"
#include "compiler/autoschedule/templates/parameters.h"
#include "compiler/autoschedule/templates/turned_reads.h"
#include "compiler/ir/build.h"

namespace kiln::autoschedule {
namespace {

/// Blocks of rows and columns, so that what is read along the rows is still in the cache when the
/// next column reads what is beside it.
void write_blocks(const StageGraph& graph, StageId id, AxisId across,
                  const std::vector<AxisId>& line, StepWriter& steps, const Values& values) {
  std::vector<AxisId> order = others_of(graph, id, across, line);
  const auto [rows, row] = steps.split(id, across, values.get("rows", 1));
  const auto [columns, column] = steps.split(id, steps.fuse(id, line), values.get("lanes", 1));
  order.push_back(rows);
  const std::vector<AxisId> outer = order;
  order.insert(order.end(), {columns, row, column});
  steps.reorder(id, order);
  steps.vectorize(id, column);
  if (values.get("parallel", 0) != 0) parallel_outer(graph, steps, id, outer);
}

/// The axis along which neighbours are read where the last axis steps over rows, as in a transpose.
std::optional<AxisId> axis_across(const StageGraph& graph, StageId id) {
  const Stage& stage = graph[id];
  const std::vector<AxisId> columns = columns_of(stage);
  if (columns.size() < 2 || !is_strided(graph, stage, columns.back())) return std::nullopt;
  for (size_t i = columns.size() - 1; i-- > 0;) {
    if (is_contiguous(graph, stage, columns[i])) return columns[i];
  }
  return std::nullopt;
}

/// Blocks of rows and columns, for which what lies across is copied in their own order. "down
/// first": down the rows, where lines of what lies across go on, and not along them.
void write_turned_blocks(const StageGraph& graph, StageId id, AxisId across,
                         const std::vector<AxisId>& line,
                         const std::vector<const ir::TensorRead*>& reads, int64_t lanes,
                         StepWriter& steps, const Values& values) {
  const std::vector<AxisId> others = others_of(graph, id, across, line);
  std::vector<AxisId> outer = others;
  const auto [rows, row] = steps.split(id, across, values.get("rows", lanes));
  const auto [columns, column] = steps.split(id, steps.fuse(id, line), values.get("lanes", lanes));
  const bool is_down = values.get("down first", 1) != 0;
  outer.push_back(is_down ? columns : rows);
  const AxisId inner = is_down ? rows : columns;
  std::vector<AxisId> order = outer;
  order.insert(order.end(), {inner, row, column});
  steps.reorder(id, order);
  steps.vectorize(id, column);
  if (values.get("parallel", 0) != 0) {
    parallel_outer(graph, steps, id, outer);
    // Few tiles side by side are few parts for many cores: half of those that are many
    // (parameters.cc), since blocks of rows are as many parts of each.
    constexpr int64_t kFewTiles = 32;
    const std::vector<AxisId> side = is_down ? line : std::vector<AxisId>{across};
    const int64_t length = constant_extent_of(graph, side).value_or(kFewTiles);
    const int64_t tiles = length / values.get(is_down ? "lanes" : "rows", lanes);
    if (others.empty() && tiles < kFewTiles) steps.parallel(id, inner);
  }
  for (const ir::TensorRead* read : reads) {
    std::vector<AxisId> layout;
    for (const AxisId axis : others)
      if (is_used_in(graph, *read, axis)) layout.push_back(axis);
    layout.insert(layout.end(), {outer.back(), inner, row, column});
    copy_turned(steps, id, *read, layout, inner, lanes);
  }
}

/// Of two parameters of rows and columns the values that take least; and what these take.
double prefer_cheapest(Parameter& rows, Parameter& columns, ElementBlock block,
                       const AcrossCost& cost) {
  double least = std::numeric_limits<double>::infinity();
  for (const int64_t row : rows.values) {
    for (const int64_t column : columns.values) {
      block.rows = static_cast<double>(row);
      block.columns = static_cast<double>(column);
      block.lanes = block.columns;
      const double cycles = cost.cycles(block);
      if (cycles >= least) continue;
      least = cycles;
      rows.preferred = row;
      columns.preferred = column;
    }
  }
  return least;
}

}  // namespace

std::vector<Sketch> with_blocks_across(const Chooser& chooser, StageId id, Sketch elements,
                                       bool may_be_parallel) {
  const StageGraph& graph = chooser.graph;
  const std::optional<AxisId> across = axis_across(graph, id);
  if (!across) return {std::move(elements)};
  const std::vector<AxisId> line = line_of(graph, id, *across);
  const AcrossCost cost(chooser, id, *across, line);
  const AcrossCost apart(chooser, id, *across, {line.back()});  // the axes of the line
  const Parameter parallel = elements.parameters.back();
  Parameter columns = elements.parameters.front();
  // Longer vectors of functions are spilled.
  if (has_functions(graph, id))
    std::erase_if(columns.values, [&](int64_t lanes) { return lanes > columns.preferred; });
  std::vector<std::pair<double, Sketch>> sketches;
  sketches.emplace_back(apart.row_by_row(static_cast<double>(columns.preferred)),
                        std::move(elements));

  Parameter rows = tile_parameter(graph, "rows", *across, {4, 8, 16, 32, 64}, 16);
  const double in_blocks = prefer_cheapest(rows, columns, {}, cost);
  Sketch blocks{.name = "blocks",
                .parameters = {rows, columns, parallel},
                .write = [&graph, id, across, line](StepWriter& steps, const Values& values) {
                  write_blocks(graph, id, *across, line, steps, values);
                }};
  sketches.emplace_back(in_blocks, std::move(blocks));
  if (!may_be_parallel) return {std::move(sketches[0].second), std::move(sketches[1].second)};

  const int64_t lanes = std::min(register_lanes(chooser, id), kMostLanesOfSquare);
  // Of squares with less rows most would be empty: colours of 224 x 224 bytes take 48 us so, and
  // 5 where each vector takes its own (Zen 4).
  const bool fill_squares = 2 * constant_extent(graph, *across).value_or(lanes) >= lanes;
  std::vector<const ir::TensorRead*> turned;
  if (fill_squares && id < graph.kernel->definition.stages.size())
    turned = turned_reads(graph, id, *across);
  if (!turned.empty()) {
    rows = tile_parameter(graph, "rows", *across, {lanes, 2 * lanes, 4 * lanes}, lanes);
    columns = {"lanes", {lanes, 2 * lanes, 4 * lanes}, lanes};
    if (line.size() == 1)
      columns = tile_parameter(graph, "lanes", line[0], std::move(columns.values), lanes);
    ElementBlock block{.square = static_cast<double>(lanes), .is_down = true};
    double in_squares = prefer_cheapest(rows, columns, block, cost);
    Parameter down{"down first", {0, 1}, 1};
    block.is_down = false;
    Parameter other_rows = rows;
    Parameter other_columns = columns;
    const double along = prefer_cheapest(other_rows, other_columns, block, cost);
    if (along < in_squares) {
      in_squares = along;
      rows = other_rows;
      columns = other_columns;
      down.preferred = 0;
    }
    Sketch squares{.name = "turned blocks",
                   .parameters = {rows, columns, down, parallel},
                   .write = [&graph, id, across, line, turned, lanes](StepWriter& steps,
                                                                      const Values& values) {
                     write_turned_blocks(graph, id, *across, line, turned, lanes, steps, values);
                   }};
    sketches.emplace_back(in_squares, std::move(squares));
  }
  return cheapest_first(std::move(sketches));
}

}  // namespace kiln::autoschedule
