// Distances of points to other points, and what else is reduced of two rows:
//
//   D[i, j] = sum[k]((X[i, k] - Y[j, k]) * (X[i, k] - Y[j, k])), 500 x 500 of 128
//     ->  5 x 2 sums, each a vector along k, so that a row is loaded for several of the other's
//
// Tiles as those of dot products, of any function of two elements. That takes a Zen 3 1.1 ms, and
// 3.9 with one sum at a time, which waits for two loads a vector.
#include "compiler/autoschedule/templates/paired_rows.h"

#include <algorithm>
#include <limits>

#include "compiler/autoschedule/templates/dot_products.h"
#include "compiler/autoschedule/templates/element_work.h"
#include "compiler/autoschedule/templates/stage_cycles.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {
namespace {

constexpr int64_t kMostRows = 6;
constexpr int64_t kMostColumns = 4;
// Of shorter rows, adding up the lanes takes more than is saved: 10000 x 50 of 16 take a Zen 3 745
// us one at a time and 1130 so, 1000 x 10 of 32 21 and 20, 130 x 215 of 46 155 and 103.
constexpr int64_t kLeastVectors = 4;
// Beside the sums: a row, and what is computed of it and of a column.
constexpr int64_t kOtherRegisters = 2;
// Of the registers, that sums take: what is computed of a pair has to lie somewhere, too. 4 x 3 of
// squared differences are spilled with 16.
constexpr double kMostSums = 0.65;

/// Whether some tensors are read by rows and others by columns, and none by both.
bool are_pairs(const StageGraph& graph, const std::vector<const ir::TensorRead*>& reads, AxisId row,
               AxisId column) {
  const auto reads_along = [&](AxisId axis) {
    return std::ranges::any_of(
        reads, [&](const ir::TensorRead* read) { return is_used_in(graph, *read, axis); });
  };
  const bool has_both = std::ranges::any_of(reads, [&](const ir::TensorRead* read) {
    return is_used_in(graph, *read, row) && is_used_in(graph, *read, column);
  });
  return !has_both && reads_along(row) && reads_along(column);
}

/// Rows and columns of a tile that take the fewest cycles; `busy`: those of one vector of a pair.
DotShape tile_of(const Machine& machine, int64_t rows, int64_t columns, int64_t vectors,
                 double busy) {
  const int64_t registers = machine.vectors.registers;
  DotShape best;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t r = 1; r <= std::min(rows, kMostRows); ++r) {
    for (int64_t c = 1; c <= std::min(columns, kMostColumns); ++c) {
      const auto sums = static_cast<double>(r * c);
      if (sums > kMostSums * static_cast<double>(registers) ||
          r * c + c + kOtherRegisters > registers)
        break;
      const double step =
          std::max({sums * busy, static_cast<double>(r + c) / machine.loads, machine.latency}) +
          machine.dots.loop;
      const double tile =
          static_cast<double>(vectors) * step + machine.tile_cycles + machine.dots.sum * sums;
      const double cycles = static_cast<double>(ceil_div(rows, r) * ceil_div(columns, c)) * tile;
      if (cycles >= least) continue;
      least = cycles;
      best = {r, c};
    }
  }
  return best;
}

void write_paired_rows(const StageGraph& graph, StageId id, int64_t lanes, StepWriter& steps,
                       const Values& values) {
  const Stage& stage = graph[id];
  std::vector<AxisId> outer(stage.data.begin(), stage.data.end() - 2);
  const auto [rows, row] = steps.split(id, *(stage.data.end() - 2), values.get("rows", 1));
  const auto [columns, column] = steps.split(id, stage.data.back(), values.get("columns", 1));
  const auto [chunks, chunk] = steps.split(id, stage.reduce.back(), lanes);
  std::vector<AxisId> order = outer;
  order.insert(order.end(), {rows, columns});
  order.insert(order.end(), stage.reduce.begin(), stage.reduce.end() - 1);
  order.insert(order.end(), {chunks, row, column, chunk});
  steps.reorder(id, order);
  steps.vectorize(id, chunk);
  steps.unroll(id, column);
  steps.unroll(id, row);
  outer.push_back(rows);
  if (values.get("parallel", 0) != 0) parallel_outer(graph, steps, id, outer);
}

}  // namespace

std::optional<Sketch> paired_rows_sketch(const Chooser& chooser, StageId id,
                                         const ReductionVectors& vectors, bool may_be_parallel) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  if (vectors.along_data || stage.data.size() < 2 || stage.types.size() != 1) return std::nullopt;
  const AxisId row = *(stage.data.end() - 2);
  const AxisId column = stage.data.back();
  const int64_t lanes = register_lanes(chooser, id);
  const auto rows = constant_extent(graph, row);
  const auto columns = constant_extent(graph, column);
  const auto steps = constant_extent(graph, stage.reduce.back());
  if (!rows || !columns || !steps || *rows < 2 || *columns < 2 || *steps < kLeastVectors * lanes)
    return std::nullopt;
  const std::vector<ir::Expr> bodies = schedule::expanded_bodies(graph, id);
  const ElementWork work = element_work(graph, bodies, chooser.machine, lanes);
  if (!are_pairs(graph, work.reads, row, column)) return std::nullopt;
  const double busy = std::max(work.busy.all, work.busy.multiply_adds);
  const DotShape tile = tile_of(chooser.machine, *rows, *columns, ceil_div(*steps, lanes), busy);
  // Other tiles round in another way, which the candidates of a stage may not.
  return Sketch{
      .name = "pairs of rows",
      .parameters = {{"rows", {tile.rows}, tile.rows},
                     {"columns", {tile.columns}, tile.columns},
                     parallel_parameter(may_be_parallel && is_worth_sharing(chooser, id))},
      .write = [&graph, id, lanes](StepWriter& steps, const Values& values) {
        write_paired_rows(graph, id, lanes, steps, values);
      }};
}

}  // namespace kiln::autoschedule
