#include "compiler/autoschedule/tile_cost.h"

#include <algorithm>
#include <limits>

namespace kiln::autoschedule {
namespace {

// A core does two multiply-adds and two loads a cycle; a sum is ready for the next one after four.
// Measured on Sapphire Rapids, where shapes differ by up to 20 %; on Zen 5 they hardly do.
constexpr double kPerCycle = 2;
constexpr double kLatency = 4;
// Of one step of the reduction: the loop itself.
constexpr double kLoopCycles = 1.5;
// Of a tile: the end of its loop is not foreseen, its elements come and go.
constexpr double kTileCycles = 30;
constexpr double kElementCycles = 2;
constexpr int64_t kMostRows = 14;
constexpr int64_t kMostVectors = 4;

// From so many tasks on, what the last ones leave undone does not count.
constexpr int64_t kManyTasks = 32;
constexpr int64_t kBlockTasks = 8;
// A block of rows of the row factor stays in the second cache while all panels pass.
constexpr int64_t kBlockElements = 256 * 1024;
// Panels that are copied at once leave room for rows in the second cache.
constexpr int64_t kPanelElements = 160 * 1024;
// Rows that take as long to compute as a panel takes to come from the third cache.
constexpr double kFetchedRows = 16;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

double one_tile(const ContractionSize& size, int64_t rows, int64_t columns) {
  if (rows == 0 || columns == 0) return 0;
  const auto vectors = static_cast<double>(ceil_div(columns, size.register_lanes));
  const double sums = static_cast<double>(rows) * vectors;
  const double busy =
      std::max({sums / kPerCycle, kLatency, (static_cast<double>(rows) + vectors) / kPerCycle});
  const double fetch = size.vector_cycles * vectors + size.row_cycles * static_cast<double>(rows);
  const double step = busy + kLoopCycles + fetch;
  return static_cast<double>(size.steps) * step + kTileCycles + kElementCycles * sums;
}

}  // namespace

double imbalance(int64_t tasks) {
  if (tasks >= kManyTasks) return 1;
  return 2.0 * static_cast<double>(ceil_div(tasks, 2)) / static_cast<double>(tasks);
}

double tile_cycles(const ContractionSize& size, const TileShape& tile) {
  const int64_t full_rows = size.rows / tile.rows;
  const int64_t full_columns = size.columns / tile.lanes;
  const auto across = [&](int64_t rows) {
    return static_cast<double>(full_columns) * one_tile(size, rows, tile.lanes) +
           one_tile(size, rows, size.columns % tile.lanes);
  };
  const double full = across(tile.rows);
  const double rest = across(size.rows % tile.rows);
  const double all = static_cast<double>(full_rows) * full + rest;
  if (!size.few_tasks || full_rows >= kManyTasks) return all;
  // The rest is done by the core that has less to do.
  const double longer = full_rows % 2 == 0 ? static_cast<double>(full_rows) * full + 2 * rest
                                           : static_cast<double>(full_rows + 1) * full;
  return std::max(all, longer);
}

TileShape best_tile(const ContractionSize& size) {
  TileShape best{1, std::min(size.columns, size.register_lanes)};
  double least = std::numeric_limits<double>::infinity();
  const int64_t most_vectors = std::min(kMostVectors, ceil_div(size.columns, size.register_lanes));
  for (int64_t vectors = std::min(size.least_vectors, most_vectors); vectors <= most_vectors;
       ++vectors) {
    for (int64_t rows = 1; rows <= std::min(size.rows, kMostRows); ++rows) {
      const int64_t sums = rows * vectors;
      if (sums > size.most_sums || sums + vectors + 1 > size.registers) break;
      const TileShape tile{rows, std::min(size.columns, vectors * size.register_lanes)};
      const double cycles = tile_cycles(size, tile);
      if (cycles >= least) continue;
      least = cycles;
      best = tile;
    }
  }
  return best;
}

int64_t best_panels(const ContractionSize& size, int64_t lanes, int64_t products) {
  const int64_t all = ceil_div(size.columns, lanes);
  for (const int64_t panels : {8, 6, 4, 3, 2}) {
    const bool is_too_much = products * ceil_div(all, panels) < kBlockTasks ||
                             panels * lanes * size.steps > kPanelElements;
    if (!is_too_much) return panels;
  }
  return 1;
}

int64_t best_block(const ContractionSize& size, int64_t tile_rows) {
  int64_t best = 1;
  double least = 0;
  for (const int64_t tiles : {4, 8, 16, 32}) {
    const int64_t rows = tiles * tile_rows;
    const int64_t tasks = ceil_div(size.rows, rows);
    if (best > 1 && (tasks < kBlockTasks || rows * size.steps > kBlockElements)) break;
    const double whole = static_cast<double>(tasks * rows) / static_cast<double>(size.rows);
    const double time = imbalance(tasks) * whole * (1 + kFetchedRows / static_cast<double>(rows));
    if (best > 1 && time >= least) continue;
    least = time;
    best = tiles;
  }
  return best;
}

}  // namespace kiln::autoschedule
