// The ways to compute a product that are compared: tiles that keep a core busy, with each number
// that goes with where the columns are.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "compiler/autoschedule/templates/dot_products.h"
#include "compiler/autoschedule/templates/product_cost.h"
#include "compiler/autoschedule/templates/streamed_columns.h"
#include "compiler/autoschedule/templates/transfers.h"

namespace kiln::autoschedule {
namespace {

// Shapes whose cores take the fewest cycles; others have not been the cheapest.
constexpr size_t kShapes = 12;
// Registers for a vector of each panel's columns, and an element of a row.
constexpr int64_t kBesideSums = 4;
// Elements of steps that are written out stay in registers for neighbouring rows, where sums leave
// room for them: else they are spilled, which takes most time where columns come from L2. A dilated
// 5 x 5 of 53 channels takes a Zen 3 17 ms in tiles of 6 x 16 and 7.9 in those of 4 x 16, a 3 x 3
// of 5 channels 64 us in 4 x 24 and 34; but one of 10 channels 179 us in 6 x 16 and 197.
constexpr int64_t kFewVectors = 2;
constexpr int64_t kAtOnce[] = {1, 2, 3, 4, 6, 8};
constexpr int64_t kUnitTilesAtOnce[] = {1, 2, 3, 4, 6, 8, 12, 16};
constexpr int64_t kRowTiles[] = {1, 4, 8, 16, 32};
constexpr int64_t kMostRowTiles = 16;
// Steps of tiles in place. Columns of 2000 x 200 times each other take a Zen 3 2.8 ms at once, 2.1
// in 8 times and 1.75 in 16.
constexpr int64_t kMostDepth = 128;
// Of few rows by blocks of columns that are fetched ahead, of which they take some steps at once.
// From memory no more than the CPU follows by itself, too: 24 x 4096 x 4096 takes a Golden Cove 6.4
// ms with 32 steps, 7.4 with 64 and 10.2 with 128, 24 x 1024 x 1024, which are in L3, 0.33, 0.30
// and 0.30.
constexpr int64_t kDepthsAhead[] = {64, 128};
constexpr int64_t kDepthsFromMemory[] = {32};
constexpr double kKeptAhead = 0.75;
// With more, copies are read often enough: 64 x 768 x 3072 takes 2.07 ms either way. And with half
// as many, where vectors lie across two lines: 33 x 1000 x 777 0.45 ms, in panels 0.42.
constexpr int64_t kMostRowsAhead = 64;
constexpr int64_t kMostRowsAcrossLines = 32;
constexpr int64_t kMostBlocks = 2;  // for each core
// With more rows, sums that come and go cost more than panels from L2: a product of 1024 had 120 to
// 147 GFLOP/s on Sapphire Rapids instead of 155 to 163.
constexpr int64_t kManyRows = 128;
// Multiply-adds of a block of rows, in whose place there need not be tasks: at 16 to 64 a cycle
// about what waking other cores takes, once to five times. With a fifth of that, once on a Zen 3,
// seven products of 64 to 1000 rows take 1.02 times as long on two of its cores.
constexpr int64_t kBlockWork = 1024 * 1024;

std::vector<TileShape> shapes_of(const Product& product, Panels panels, const PlanLimits& limits,
                                 const Machine& machine) {
  if (limits.tile) return {*limits.tile};
  if (product.unit) return best_unit_tiles(product.size.rows, product.size.columns, *product.unit);
  ContractionSize size = product.size;
  // Panels in L2 need nothing loaded ahead.
  if (panels == Panels::Packed) size.most_sums = size.registers - kBesideSums;
  if (size.writes_out_steps && size.registers < kManyRegisters) {
    ++size.term_registers;
    const double panel =
        static_cast<double>(size.steps * size.register_lanes * kFewVectors) * product.sum_bytes;
    if (panel > static_cast<double>(machine.l1_bytes)) size.most_sums = size.registers / 2;
  }
  std::vector<std::pair<double, TileShape>> shapes;
  for (const TileShape& tile : tile_shapes(size)) {
    const int64_t full = product.size.columns / tile.lanes;
    const auto rows = static_cast<double>(ceil_div(product.size.rows, tile.rows));
    const double across =
        static_cast<double>(full) * tile_core_cycles(product.size, tile.rows, tile.lanes) +
        tile_core_cycles(product.size, tile.rows, product.size.columns % tile.lanes);
    shapes.emplace_back(rows * across, tile);
  }
  std::ranges::stable_sort(shapes, {}, &std::pair<double, TileShape>::first);
  if (shapes.size() > kShapes) shapes.resize(kShapes);
  std::vector<TileShape> cheapest;
  for (const auto& [cycles, tile] : shapes)
    cheapest.push_back(tile);
  return cheapest;
}

/// Whether cores have enough blocks to share.
bool has_tasks(const Product& product, int64_t extent, int64_t part) {
  return product.batch * ceil_div(extent, part) >= product.size.block_tasks;
}

/// Steps of columns that stay where they are, of which a block of rows takes some at once; 0 where
/// these would be most of them.
int64_t depth_in_place(int64_t steps) {
  if (steps < 2 * kMostDepth) return 0;
  const int64_t depth = whole_part(steps, kMostDepth / 4, kMostDepth);
  return depth > 0 ? depth : kMostDepth;
}

/// So many steps of columns L2 has room for beside the sums, whose rows lie as far apart, and what
/// comes next.
int64_t most_steps_ahead(const Product& product, const Machine& machine) {
  const double distance = product.column_distance;
  if (std::fmod(distance, Transfers::kLineBytes) != 0) return product.size.steps;
  const double kept = lines_kept(machine.l2_bytes, machine.l2_ways, distance);
  return static_cast<int64_t>(kept * kKeptAhead) - product.size.rows;
}

/// Tiles of columns in place that are fetched ahead.
std::vector<ProductPlan> plans_ahead(const Product& product, ProductPlan plan,
                                     const Machine& machine) {
  const ContractionSize& size = product.size;
  const double columns =
      static_cast<double>(product.panel_batch * size.steps * size.columns) * product.column_bytes;
  // Steps that lie in one set of L1 evict each other before the next rows come.
  const bool are_spread = std::fmod(product.column_distance, Transfers::kLineBytes) != 0;
  const bool are_few = size.rows <= (are_spread ? kMostRowsAcrossLines : kMostRowsAhead);
  if (!are_few || columns <= static_cast<double>(machine.l2_bytes)) return {};
  std::vector<ProductPlan> plans;
  plan.ahead = machine.steps_ahead;
  const bool is_in_l3 = 2 * columns <= static_cast<double>(machine.l3_bytes);
  const bool is_one_tile = size.rows <= plan.tile.rows;
  plan.columns_first = !is_one_tile;
  if (is_in_l3 && (is_one_tile || are_spread)) plans.push_back(plan);
  plan.columns_first = true;
  const int64_t most = std::min(most_steps_ahead(product, machine), size.steps / 2);
  const int64_t tiles = ceil_div(size.columns, plan.tile.lanes);
  for (const int64_t depth : is_in_l3 ? std::span<const int64_t>(kDepthsAhead)
                                      : std::span<const int64_t>(kDepthsFromMemory)) {
    if (depth > most) break;
    plan.depth = depth;
    for (int64_t blocks = machine.cores; blocks <= kMostBlocks * machine.cores; ++blocks) {
      plan.at_once = ceil_div(tiles, blocks);
      plans.push_back(plan);
      if (plan.at_once == 1) break;
    }
  }
  return plans;
}

/// All numbers that go with a tile of this shape.
std::vector<ProductPlan> plans_with(const Product& product, Panels panels, const TileShape& tile,
                                    const PlanLimits& limits, const Machine& machine) {
  std::vector<ProductPlan> plans;
  const ProductPlan plain{.panels = panels, .tile = tile};
  const auto add = [&](ProductPlan plan) {
    plan.copies_rows = limits.must_copy_rows;
    plans.push_back(plan);
    plan.copies_rows = true;
    const bool has_blocks = panels == Panels::InPlace && plan.row_tiles > 1;
    if (limits.may_copy_rows && plan.depth == 0 && !has_blocks) plans.push_back(plan);
  };
  const int64_t row_tiles = ceil_div(product.size.rows, tile.rows);
  switch (panels) {
    case Panels::Streamed: break;  // streamed_plans
    case Panels::AlongSum: break;  // dots_plans
    case Panels::Packed:
      for (const int64_t at_once : product.unit ? std::span<const int64_t>(kUnitTilesAtOnce)
                                                : std::span<const int64_t>(kAtOnce)) {
        if (at_once > 1 && (at_once > ceil_div(product.size.columns, tile.lanes) ||
                            !has_tasks(product, product.size.columns, at_once * tile.lanes)))
          break;
        ProductPlan plan = plain;
        plan.at_once = at_once;
        add(plan);
        if (at_once > 1) {
          plan.columns_first = true;
          add(plan);
        }
      }
      if (const int64_t depth = best_depth(product.size, tile.lanes);
          limits.may_cut_steps && product.size.rows < kManyRows && depth > 0) {
        ProductPlan plan = plain;
        plan.depth = depth;
        add(plan);
      }
      break;
    case Panels::AllInAdvance:
      for (const int64_t tiles : kRowTiles) {
        if (tiles > 1 && !has_tasks(product, product.size.rows, tiles * tile.rows)) break;
        // A row that is left beyond whole tiles has code of its own in each block.
        const bool is_ragged = product.size.rows % tile.rows != 0;
        if (tiles > 1 && is_ragged && product.group_products == 1) continue;
        ProductPlan plan = plain;
        plan.row_tiles = tiles;
        add(plan);
      }
      break;
    case Panels::InPlace: {
      add(plain);
      if (limits.may_fetch_ahead && machine.steps_ahead > 0)
        std::ranges::copy(plans_ahead(product, plain, machine), std::back_inserter(plans));
      if (row_tiles > 1 && tile.lanes < product.size.columns) {
        ProductPlan plan = plain;
        plan.columns_first = true;
        add(plan);
      }
      // No tile is left out of a block, so that there is no more code for it.
      const int64_t full = product.size.rows / tile.rows;
      const int64_t work = product.size.columns * product.size.steps;
      for (int64_t tiles = 2; tiles <= std::min(full / 2, kMostRowTiles); ++tiles) {
        const int64_t rows = tiles * tile.rows;
        const bool is_small = rows * work <= kBlockWork;
        if (full % tiles != 0 || (!is_small && !has_tasks(product, product.size.rows, rows)))
          continue;
        ProductPlan plan = plain;
        plan.row_tiles = tiles;
        add(plan);
        plan.depth = limits.may_cut_in_place ? depth_in_place(product.size.steps) : 0;
        if (plan.depth > 0) plans.push_back(plan);
      }
      break;
    }
  }
  return plans;
}

}  // namespace

CheapestPlan cheapest_plan(const Product& product, Panels panels, const PlanLimits& limits,
                           const Machine& machine) {
  CheapestPlan cheapest{.cycles = std::numeric_limits<double>::infinity()};
  const auto consider = [&](const std::vector<ProductPlan>& plans) {
    for (const ProductPlan& plan : plans) {
      const double cycles = product_cycles(product, plan, machine).all;
      if (cycles < cheapest.cycles) cheapest = {plan, cycles};
    }
  };
  if (panels == Panels::Streamed) {
    consider(streamed_plans(product, limits, machine));
    return cheapest;
  }
  if (panels == Panels::AlongSum) {
    consider(dots_plans(product, limits));
    return cheapest;
  }
  for (const TileShape& tile : shapes_of(product, panels, limits, machine))
    consider(plans_with(product, panels, tile, limits, machine));
  return cheapest;
}

}  // namespace kiln::autoschedule
