// How long a matrix unit (Intel AMX) takes for a tile of sums: 32 x 32 of them where there are so
// many, so that each tile of a factor is used twice; of few rows or columns what wastes least.
//
//   1024 x 1024  ->  32 x 32      33 rows  ->  3 x 11 rows of 48 columns
//
// What a step loads comes beside its products, a row of a tile a cycle from L2.
#include "compiler/autoschedule/templates/unit_tile_cost.h"

#include <algorithm>
#include <utility>

#include "compiler/analysis/tile_settings.h"

namespace kiln::autoschedule {
namespace {

using analysis::kTileColumns;
using analysis::kTileRows;

// Of vectors, which take what tiles do not.
constexpr int64_t kRegisters = 32;
constexpr int64_t kMostRows = 4 * kTileRows;
constexpr int64_t kMostColumns = 4 * kTileColumns;
constexpr size_t kShapes = 6;  // that are compared

double one_tile(int64_t rows, int64_t columns, const UnitSteps& steps) {
  if (rows == 0 || columns == 0) return 0;
  const auto times = static_cast<double>(steps.times);
  if (!analysis::tiles_have_room(rows, columns, steps.groups)) {
    const int64_t vectors = ceil_div(columns, kTileColumns);
    const bool has_registers = (rows + 1) * vectors + 1 <= kRegisters;
    return (has_registers ? steps.cycles.vector : steps.cycles.spilled_vector) * times *
               static_cast<double>(steps.groups * vectors * (rows + 1)) +
           steps.cycles.tile;
  }
  const auto column_tiles = static_cast<double>(ceil_div(columns, kTileColumns));
  const double loads = static_cast<double>(rows) + column_tiles * kTileRows;
  const double step = std::max(analysis::cycles_of_step(rows, columns), loads);
  const double stored = steps.cycles.stored_row * static_cast<double>(rows) * column_tiles;
  const int64_t at_once = ceil_div(steps.groups, analysis::groups_at_once(steps.groups));
  return step * times * static_cast<double>(at_once) + steps.cycles.tile + stored;
}

}  // namespace

double unit_product_cycles(int64_t rows, int64_t columns, const TileShape& tile,
                           const UnitSteps& steps) {
  const int64_t full_columns = columns / tile.lanes;
  const int64_t full_rows = rows / tile.rows;
  const auto across = [&](int64_t height) {
    return static_cast<double>(full_columns) * one_tile(height, tile.lanes, steps) +
           one_tile(height, columns % tile.lanes, steps);
  };
  return static_cast<double>(full_rows) * across(tile.rows) + across(rows % tile.rows);
}

OtherSettings other_settings(int64_t rows, int64_t columns, const TileShape& tile,
                             const UnitSteps& steps) {
  analysis::TileSettings settings;
  const auto has_others = [&](int64_t height, int64_t width) {
    if (!analysis::tiles_have_room(height, width, steps.groups)) return false;
    return !settings.add(analysis::TileShape::of(height, width, steps.groups));
  };
  has_others(tile.rows, tile.lanes);
  OtherSettings others;
  others.columns = has_others(tile.rows, columns % tile.lanes);
  others.rows = has_others(rows % tile.rows, tile.lanes);
  return others;
}

std::vector<TileShape> best_unit_tiles(int64_t rows, int64_t columns, const UnitSteps& steps) {
  std::vector<std::pair<double, TileShape>> shapes;
  for (int64_t lanes = kTileColumns; lanes <= kMostColumns; lanes += kTileColumns) {
    const int64_t wide = std::min(lanes, columns);
    for (int64_t tall = 2; tall <= std::min(rows, kMostRows); ++tall) {
      if (!analysis::tiles_have_room(tall, wide, steps.groups)) continue;
      const TileShape tile{tall, wide};
      double cycles = unit_product_cycles(rows, columns, tile, steps);
      // Tiles of rows outside, which is the most.
      if (other_settings(rows, columns, tile, steps).columns)
        cycles += steps.cycles.setting * static_cast<double>(ceil_div(rows, tall));
      shapes.emplace_back(cycles, tile);
    }
    if (wide == columns) break;
  }
  std::ranges::stable_sort(shapes, {}, &std::pair<double, TileShape>::first);
  std::vector<TileShape> best;
  if (shapes.empty()) best = {{std::min(rows, 2 * kTileRows), std::min(columns, 2 * kTileColumns)}};
  for (size_t i = 0; i < std::min(shapes.size(), kShapes); ++i)
    best.push_back(shapes[i].second);
  return best;
}

}  // namespace kiln::autoschedule
