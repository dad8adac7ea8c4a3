// Which tiles a matrix unit (Intel AMX) gets: 32 x 32 sums where there are so many, so that each
// tile of a factor is used twice; of few rows or columns what wastes least.
//
//   1024 x 1024  ->  32 x 32      33 rows  ->  3 x 11 rows of 48 columns
//
// What a step loads comes beside its products, a row of a tile a cycle from L2.
#include "compiler/autoschedule/templates/unit_tiles.h"

#include <algorithm>
#include <limits>
#include <set>

#include "compiler/analysis/tile_product.h"

namespace kiln::autoschedule {
namespace {

using analysis::kTileColumns;
using analysis::kTileRows;

// Of a tile: its sums are set to zero and stored, a row of a tile at a time.
constexpr double kTileCycles = 40;
constexpr double kStoredRowCycles = 0.9;
// Where there are no tiles for what is left over of rows and columns, vectors take so long for a
// group of steps; more where their sums have no registers, which load and store them (3 and 9 were
// measured).
constexpr double kVectorCycles = 0.6;
constexpr double kSpilledCycles = 5;
constexpr int64_t kRegisters = 32;
constexpr int64_t kMostRows = 4 * kTileRows;
constexpr int64_t kMostColumns = 4 * kTileColumns;
constexpr int64_t kMany = int64_t{1} << 20;
// Rows a column from which on all panels are copied first.
constexpr int64_t kRowsOfColumns = 4;

double cycles_of(int64_t rows, int64_t columns, const UnitSteps& steps) {
  if (rows == 0 || columns == 0) return 0;
  const auto times = static_cast<double>(steps.times);
  if (!analysis::tiles_have_room(rows, columns, steps.groups)) {
    const int64_t vectors = ceil_div(columns, kTileColumns);
    const bool has_registers = (rows + 1) * vectors + 1 <= kRegisters;
    return (has_registers ? kVectorCycles : kSpilledCycles) * times *
               static_cast<double>(steps.groups * vectors * (rows + 1)) +
           kTileCycles;
  }
  const auto column_tiles = static_cast<double>(ceil_div(columns, kTileColumns));
  const double loads = static_cast<double>(rows) + column_tiles * kTileRows;
  const double step = std::max(analysis::cycles_of_step(rows, columns), loads);
  const double stored = kStoredRowCycles * static_cast<double>(rows) * column_tiles;
  const int64_t at_once = ceil_div(steps.groups, analysis::groups_at_once(steps.groups));
  return step * times * static_cast<double>(at_once) + kTileCycles + stored;
}

UnitSteps unit_steps_of(const StageGraph& graph, const Tiling& tiling, const Numbers& numbers) {
  // Steps that are no whole group are left to vectors.
  const int64_t steps = constant_extent(graph, tiling.group.axis).value_or(1);
  const int64_t groups = std::max<int64_t>(steps / tiling.group.products, 1);
  return {groups, std::max<int64_t>(numbers.size.steps / groups, 1)};
}

/// Tiles of columns that a core copies at once: two fifths of L2, as for panels of vectors.
int64_t panels_at_once(const Numbers& numbers, int64_t lanes) {
  const ContractionSize& size = numbers.size;
  int64_t best = 1;
  for (const int64_t panels : {2, 3, 4, 6, 8, 12, 16}) {
    const int64_t blocks = ceil_div(size.columns, panels * lanes);
    const bool is_too_much = numbers.batch * blocks < size.block_tasks ||
                             panels * lanes * size.steps > size.l2_elements * 2 / 5;
    if (!is_too_much) best = panels;
  }
  return best;
}

/// Products of the batch that share a factor, whose batch is `axes`.
int64_t sharing(const StageGraph& graph, const Tiling& tiling, const std::vector<AxisId>& axes) {
  int64_t products = 1;
  for (const AxisId axis : tiling.batch) {
    if (std::ranges::find(axes, axis) != axes.end()) continue;
    products = std::min(kMany, products * constant_extent(graph, axis).value_or(kMany));
  }
  return products;
}

/// Whether the panels of all products, copied, stay in L2 beside what else passes.
bool all_stay_in_l2(const StageGraph& graph, const Tiling& tiling, const Numbers& numbers) {
  const int64_t copies = numbers.batch / sharing(graph, tiling, tiling.panel_batch);
  return numbers.panels > 0 && copies * numbers.panels <= numbers.size.l2_elements * 2 / 5;
}

/// Rows that do not stay in L2 come once, if all products that read them take them one after the
/// other.
bool gains_by_rows_first(const StageGraph& graph, const Tiling& tiling, const Numbers& numbers) {
  return sharing(graph, tiling, tiling.row_batch) > 1 && all_stay_in_l2(graph, tiling, numbers) &&
         numbers.size.rows * numbers.size.steps > numbers.size.l2_elements / 2;
}

/// "rows" and "lanes" around the preferred ones, all of which have room with all: sums of vectors
/// are rounded in another way.
std::vector<Parameter> sides_around(const StageGraph& graph, const Contraction& contraction,
                                    const TileShape& tile, int64_t groups) {
  const auto has_room = [&](int64_t rows, int64_t lanes) {
    return analysis::tiles_have_room(rows, lanes, groups);
  };
  std::set<int64_t> lanes = {16, 32, tile.lanes};
  std::erase_if(lanes, [&](int64_t wide) { return !has_room(tile.rows, wide); });
  std::set<int64_t> rows = {8, 16, 32, tile.rows};
  std::erase_if(rows, [&](int64_t tall) {
    return !std::ranges::all_of(lanes, [&](int64_t wide) { return has_room(tall, wide); });
  });
  lanes.insert(tile.lanes);
  rows.insert(tile.rows);
  const auto parameter = [&](const char* name, AxisId axis, const std::set<int64_t>& values,
                             int64_t preferred) {
    return tile_parameter(graph, name, axis, {values.begin(), values.end()}, preferred);
  };
  return {parameter("rows", contraction.row, rows, tile.rows),
          parameter("lanes", contraction.column, lanes, tile.lanes)};
}

}  // namespace

TileShape best_unit_tile(int64_t rows, int64_t columns, const UnitSteps& steps) {
  TileShape best{std::min(rows, 2 * kTileRows), std::min(columns, 2 * kTileColumns)};
  double least = std::numeric_limits<double>::infinity();
  for (int64_t lanes = kTileColumns; lanes <= kMostColumns; lanes += kTileColumns) {
    const int64_t wide = std::min(lanes, columns);
    for (int64_t tall = 2; tall <= std::min(rows, kMostRows); ++tall) {
      if (!analysis::tiles_have_room(tall, wide, steps.groups)) continue;
      const int64_t full_columns = columns / wide;
      const int64_t full_rows = rows / tall;
      const auto across = [&](int64_t height) {
        return static_cast<double>(full_columns) * cycles_of(height, wide, steps) +
               cycles_of(height, columns % wide, steps);
      };
      const double all = static_cast<double>(full_rows) * across(tall) + across(rows % tall);
      if (all >= least) continue;
      least = all;
      best = {tall, wide};
    }
  }
  return best;
}

std::vector<Sketch> unit_tile_sketches(const Chooser& chooser, const Tiling& tiling,
                                       const Numbers& numbers, bool may_copy_all, bool parallel) {
  const StageGraph& graph = chooser.graph;
  const UnitSteps steps = unit_steps_of(graph, tiling, numbers);
  const TileShape tile = best_unit_tile(numbers.size.rows, numbers.size.columns, steps);
  const std::vector<Parameter> shape = sides_around(graph, tiling.contraction, tile, steps.groups);
  const auto sketch = [&](const char* name, std::vector<Parameter> others, auto* write) {
    std::vector<Parameter> parameters = shape;
    parameters.insert(parameters.end(), others.begin(), others.end());
    parameters.push_back(parallel_parameter(parallel));
    return Sketch{.name = name,
                  .parameters = std::move(parameters),
                  .write = [&graph, tiling, write](StepWriter& steps, const Values& values) {
                    write(graph, tiling, steps, values);
                  }};
  };
  std::vector<Sketch> sketches = {
      sketch("tiles of packed panels",
             {{"panels at once", {1, 2, 3, 4, 6, 8, 12, 16}, panels_at_once(numbers, tile.lanes)},
              {"columns first", {0, 1}, 0}},
             &write_packed_panels)};
  if (may_copy_all || all_stay_in_l2(graph, tiling, numbers)) {
    const bool rows_first = gains_by_rows_first(graph, tiling, numbers);
    const bool is_tall = numbers.size.rows > kRowsOfColumns * numbers.size.columns ||
                         (tiling.has_many_cores &&
                          numbers.batch * (numbers.size.columns / tile.lanes) < numbers.size.cores);
    sketches.insert(
        rows_first || (is_tall && may_copy_all) ? sketches.begin() : sketches.end(),
        sketch("tiles of panels in order",
               {{"rows of a panel", {0, 4, 8, 16, 32}, 0}, {"rows first", {0, 1}, rows_first}},
               &write_panels_in_order));
  }
  return sketches;
}

}  // namespace kiln::autoschedule
