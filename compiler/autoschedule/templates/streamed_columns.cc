// A few rows times columns that no cache holds: what takes the time is memory, and it is read
// fastest row by row. A tile of columns, steps one after the other, reads a piece of each row.
//
//   C[i, j] = sum[k](A[i, k] * B[k, j]), 8 rows
//     ->  for a block of 1024 columns: for 8 steps: for 16 columns: for 4 rows: add up 8 steps
//
// ms on one core of a Zen 3, float32, B of 4096 x 4096:
//
//   rows                                      1     2     4     8     16    32
//   tiles in place, or panels that are copied 4.1   8.0   11.4  11.1  16.4  22.4
//   row by row                                3.7   3.8   4.1   4.9   9.0   17.0
#include "compiler/autoschedule/templates/streamed_columns.h"

#include <algorithm>
#include <cmath>

#include "compiler/autoschedule/templates/tiled_product.h"

namespace kiln::autoschedule {
namespace {

constexpr double kLineBytes = Transfers::kLineBytes;
// Of as many sums, tiles of more rows read columns less often: they are tried first.
constexpr int64_t kLeastTileRows = 3;
constexpr int64_t kMostTileRows = 12;
constexpr int64_t kVectors[] = {1, 2, 4};
constexpr int64_t kLeastStepsAtOnce = 4;
constexpr int64_t kMostStepsAtOnce = 16;
// Longer ones are read faster, and are tried first.
constexpr int64_t kBlocks[] = {8192, 4096, 2048, 1024, 512, 256, 128};
// Of a tile whose sums are loaded when it begins, and stored when all of it is added up.
constexpr double kTileCycles = 6;
// Multiply-adds of a tile: what is written out is compiled. Where a tile has all rows, twice as
// many: 4 x 1024 x 4096 takes 0.78 ms with 16 steps of 4 x 16 sums, and 0.99 with 8; 16 x 1024 x
// 4096 as long either way.
constexpr int64_t kMostWrittenOut = 64;

/// Multiply-adds, loads and stores of a tile of so many rows.
double tile_of(const TiledProduct& tiled, double rows) {
  const ContractionSize& size = tiled.product.size;
  const double vectors = ceil_div(tiled.tile_columns, static_cast<double>(size.register_lanes));
  const auto steps = static_cast<double>(tiled.plan.depth);
  const double sums = rows * vectors;
  double widened = 0;
  if (tiled.product.is_widened) widened = steps * (vectors + (tiled.plan.copies_rows ? 0 : rows));
  const double loads = steps * (vectors + rows) + sums;
  return std::max({steps * sums / size.multiply_adds, steps * size.latency / 2, loads / size.loads,
                   sums}) +
         widened + size.loop_cycles + kTileCycles;
}

double core_of(const TiledProduct& tiled) {
  const double full = std::floor(tiled.rows / tiled.tile_rows);
  const double rest = tiled.rows - full * tiled.tile_rows;
  const double rows =
      full * tile_of(tiled, tiled.tile_rows) + (rest > 0 ? tile_of(tiled, rest) : 0);
  return tiled.batch * ceil_div(tiled.steps, static_cast<double>(tiled.plan.depth)) *
         tiled.column_tiles.count * rows;
}

Transfers fetches(const TiledProduct& tiled, const Machine& machine) {
  const Product& product = tiled.product;
  const auto depth = static_cast<double>(tiled.plan.depth);
  const double block = static_cast<double>(tiled.plan.at_once) * tiled.tile_columns;
  const double turns = ceil_div(tiled.steps, depth);
  Transfers transfers(machine, tiled.touched);
  const double sums = tiled.batch * tiled.rows * tiled.columns * product.sum_bytes;
  const double columns = tiled.steps * tiled.columns * product.column_bytes;
  transfers.first(sums);
  transfers.first(static_cast<double>(product.row_batch) * tiled.steps * tiled.rows *
                  product.row_bytes);
  transfers.first(static_cast<double>(product.panel_batch) * columns);
  transfers.pieces_in_turn(
      static_cast<double>(product.panel_batch) * tiled.steps * ceil_div(tiled.columns, block),
      product.column_distance, block * product.column_bytes);

  // Products of a batch that have the same columns read them anew.
  const double others = static_cast<double>(product.batch - product.panel_batch);
  transfers.again(others * columns, columns);

  // Sums of a block come and go for each few steps.
  const double passed = block * (tiled.rows * product.sum_bytes + depth * product.column_bytes);
  transfers.again(2 * turns * sums, passed);
  // Columns of a tile come again for the next rows, from L1 where they do not lie in one set.
  const double tile = tiled.tile_columns * product.column_bytes;
  transfers.again(
      tiled.batch * (tiled.row_tiles.count - 1) * columns,
      passed_between(depth * tile + tiled.rows * tile, depth, product.column_distance, machine));
  // And so do the rows, for each tile of columns.
  if (!tiled.plan.copies_rows && !product.are_rows_apart) {
    const double lines = turns * tiled.rows * std::max(depth * product.row_bytes, kLineBytes);
    transfers.again(
        tiled.batch * lines * tiled.column_tiles.count,
        passed_between(tiled.rows * kLineBytes, tiled.rows, product.row_neighbour, machine));
  }
  return transfers;
}

/// Whether a part leaves nothing over, or any from `least` to `most` does: that is code of its own,
/// which is compiled too.
bool leaves_least(int64_t extent, int64_t part, int64_t least, int64_t most) {
  if (extent % part == 0) return true;
  for (int64_t other = least; other <= most; ++other) {
    if (extent % other == 0) return false;
  }
  return true;
}

/// The stage's columns in blocks, tiles and vectors.
struct Columns {
  AxisId blocks;
  AxisId tiles;
  AxisId column;
};

Columns split_columns(const StageGraph& graph, const Tiling& tiling, StepWriter& steps,
                      const Values& values) {
  const int64_t lanes = values.get("lanes", 1);
  const auto [blocks, inside] = split_tile(graph, steps, tiling.stage, tiling.contraction.column,
                                           values.get("columns of a block", 1));
  const auto [tiles, column] = steps.split(tiling.stage, inside, lanes);
  return {blocks, tiles, column};
}

}  // namespace

std::vector<ProductPlan> streamed_plans(const Product& product, const PlanLimits& limits,
                                        const Machine& machine) {
  const ContractionSize& size = product.size;
  // Rows that lie in one set of L1 evict each other, and the columns.
  const bool are_in_conflict =
      product.row_neighbour >= kLineBytes && std::fmod(product.row_neighbour, kLineBytes) == 0 &&
      2 * static_cast<double>(size.rows) >
          lines_kept(machine.l1_bytes, machine.l1_ways, product.row_neighbour);
  std::vector<ProductPlan> plans;
  const auto add_blocks = [&](ProductPlan plan) {
    for (const int64_t block : kBlocks) {
      const bool has_tasks =
          product.batch * ceil_div(size.columns, block) >= size.block_tasks / kBlockTasks;
      if (!has_tasks && block != kBlocks[std::size(kBlocks) - 1]) continue;
      plan.at_once = ceil_div(std::min(block, size.columns), plan.tile.lanes);
      plans.push_back(plan);
    }
  };
  for (int64_t rows = std::min(kMostTileRows, size.rows); rows > 0; --rows) {
    if (!leaves_least(size.rows, rows, kLeastTileRows, kMostTileRows)) continue;
    for (const int64_t vectors : kVectors) {
      const int64_t lanes = vectors * size.register_lanes;
      if (lanes > size.columns || rows * vectors + vectors >= size.registers) break;
      const int64_t written_out = rows == size.rows ? 2 * kMostWrittenOut : kMostWrittenOut;
      const int64_t most = std::min({kMostStepsAtOnce, size.steps, written_out / (rows * vectors)});
      for (int64_t depth = kLeastStepsAtOnce; depth <= most; ++depth) {
        if (!leaves_least(size.steps, depth, kLeastStepsAtOnce, most)) continue;
        add_blocks({.panels = Panels::Streamed,
                    .tile = {rows, lanes},
                    .depth = depth,
                    .copies_rows = limits.may_copy_rows && are_in_conflict});
      }
    }
  }
  return plans;
}

ProductCycles streamed_cycles(const Product& product, const ProductPlan& plan,
                              const Machine& machine) {
  const TiledProduct tiled(product, plan);
  const Transfers transfers = fetches(tiled, machine);
  ProductCycles cycles{.core = core_of(tiled) + transfers.waits(),
                       .l2 = transfers.l2(),
                       .l3 = transfers.l3(),
                       .memory = transfers.memory()};
  cycles.share = core_share(tiled.columns, static_cast<double>(plan.at_once) * tiled.tile_columns,
                            tiled.batch, product.size.cores);
  if (plan.copies_rows) {
    cycles.copies = product.loop_cycles + static_cast<double>(product.row_batch) * tiled.steps *
                                              tiled.rows * machine.copied_row_cycles;
  }
  return cycles;
}

void write_streamed_columns(const StageGraph& graph, const Tiling& tiling, StepWriter& steps,
                            const Values& values) {
  const StageId id = tiling.stage;
  const AxisId row = tiling.contraction.row;
  // First as the sums are to lie, then as the results are stored.
  const Columns lying = split_columns(graph, tiling, steps, values);
  steps.reorder(id, joined({tiling.batch, {lying.blocks, lying.tiles, row, lying.column}}));
  const auto made = steps.cache_write(id, "global");
  const StageId sums = made.first;
  const std::vector<AxisId>& axes = made.second;
  const size_t batch = tiling.batch.size();
  const std::vector<AxisId> outer(axes.begin(),
                                  axes.begin() + static_cast<std::ptrdiff_t>(batch) + 1);
  const auto split = [&](AxisId axis, AxisId original, std::string_view name) {
    const int64_t extent = std::max<int64_t>(constant_extent(graph, original).value_or(1), 1);
    return steps.split(sums, axis, std::min(values.get(name, 1), extent));
  };
  const auto [rows, tile_row] = split(axes[batch + 2], row, "rows");
  const AxisId column = axes[batch + 3];
  const auto [turns, step] = split(axes[batch + 4], tiling.reduce[0], "steps at once");
  steps.reorder(sums, joined({outer, {turns, axes[batch + 1], rows, step, tile_row, column}}));
  const bool parallel = values.get("parallel", 0) != 0;
  if (values.get("rows in order", 0) != 0) {
    std::vector<AxisId> layout;
    for (size_t i = 0; i < batch; ++i) {
      if (std::ranges::find(tiling.row_batch, tiling.batch[i]) != tiling.row_batch.end())
        layout.push_back(outer[i]);
    }
    const size_t batches = layout.size();
    const auto [copy, places] =
        steps.cache_read(tiling.rows, sums, joined({layout, {turns, rows, tile_row, step}}));
    if (shares_rows(tiling, parallel)) {
      for (size_t i = 0; i <= batches; ++i)
        steps.parallel(copy, places[i]);
    }
  }
  steps.unroll(sums, step);
  steps.unroll(sums, tile_row);
  steps.vectorize(sums, column);

  const Columns stored = split_columns(graph, tiling, steps, values);
  steps.reorder(id, joined({tiling.batch, {stored.blocks, row, stored.tiles, stored.column}}));
  steps.vectorize(id, stored.column);
  steps.compute_at(sums, id, stored.blocks);
  if (parallel) parallel_outer(graph, steps, id, joined({tiling.batch, {stored.blocks}}));
}

}  // namespace kiln::autoschedule
