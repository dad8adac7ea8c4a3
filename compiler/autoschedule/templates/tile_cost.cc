// How long a contraction takes in tiles of a shape, in cycles of one core; the smallest wins.
//
//   1024 x 1024 x 1024, 32 registers of 16 lanes  ->  about 8 x 48, a few panels of B a block
//
// A step of a tile costs the largest of its multiply-adds, the latency of one, and its loads.
// Tiles, panels and blocks are those of Goto and van de Geijn, Anatomy of High-Performance Matrix
// Multiplication, 2008; docs/performance.md has what other shapes gave.
#include "compiler/autoschedule/templates/tile_cost.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "runtime/core/cpu_name.h"

namespace kiln::autoschedule {
namespace {

// Measured on Sapphire Rapids, where shapes differ by up to 20 %; on Zen 5 they hardly do. Of one
// step of the reduction: the loop itself.
constexpr double kLoopCycles = 1.5;
// What a vector was there: cycles of transfers are for a line of the cache.
constexpr double kLineBytes = 64;
// Of a tile: the end of its loop is not foreseen, its elements come and go.
constexpr double kTileCycles = 30;
constexpr double kElementCycles = 2;
constexpr int64_t kMostRows = 14;
constexpr int64_t kMostVectors = 4;

// From so many tasks a core on, what the last ones leave undone does not count.
constexpr int64_t kManyTasks = 16;
// Blocks a core that are shared.
constexpr int64_t kBlockTasks = 2;
// A block of rows of the row factor takes half of L2 while all panels pass, of which those that are
// copied at once take two fifths: rows have room beside them.
int64_t block_elements(const ContractionSize& size) { return size.l2_elements / 2; }
int64_t panel_elements(const ContractionSize& size) { return size.l2_elements * 2 / 5; }
// All rows come from L3 again for each block: what that adds to the time of a panel, and in a tile
// to that of a step, for an element. Several panels come from L2 one after the other.
constexpr double kRowsAgain = 0.08;
constexpr double kFarRowCycles = 0.35;
constexpr double kRowInOrderCycles = 0.1;
constexpr double kPanelVectorCycles = 0.7;
// A core looks ahead as far as so many instructions, so that the longer a step is, the fewer lines
// are on their way: the latency of L3 over the instructions of the window (380 of 512 on Sapphire
// Rapids, where a product of 33 rows takes 1.17 times as long in place). A core with one unit for
// multiply-adds is busy that long. And what a line of a copy takes, on Zen 4 and there.
constexpr double kFarCycles = 0.74;
constexpr double kStepInstructions = 3;
// Of an element of a row that is copied, on Zen 4 (products of 256 x 1000 x 100 to 784 x 1000 x
// 256).
constexpr double kCopiedRowCycles = 1.1;
constexpr double kCopiedVectorCycles = 7.5;
// A panel takes three quarters of L1 while rows pass, or half of it where these are read for it
// alone.
int64_t near_panel(const ContractionSize& size) { return size.l1_elements * 3 / 4; }
int64_t near_elements(const ContractionSize& size) { return size.l1_elements / 2; }
// Steps that are worth to load and store the sums.
constexpr int64_t kLeastDepth = 48;
// Multiply-adds of a block that are worth another core.
constexpr int64_t kBlockWork = 1024 * 1024;
// More tiles in a block gain nothing.
constexpr int64_t kMostTiles = 16;
// What a tile adds to its time whose columns come from L2, not from L1; where their rows are not
// aligned, each vector is split over two lines.
constexpr double kColumnsAgain = 0.02;
constexpr double kRaggedAgain = 0.08;
// Rows that take as long to compute as a panel takes to come from L3.
constexpr double kFetchedRows = 16;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

double one_tile(const ContractionSize& size, int64_t rows, int64_t columns) {
  if (rows == 0 || columns == 0) return 0;
  const auto vectors = static_cast<double>(ceil_div(columns, size.register_lanes));
  const double sums = static_cast<double>(rows) * vectors;
  // The longest of three bottlenecks: the ports of multiply-adds, the chain of one sum, and the
  // ports of loads, on which an element of a row is broadcast as it is loaded.
  const double busy = std::max({sums / size.multiply_adds, size.latency,
                                (static_cast<double>(rows) + vectors) / size.loads,
                                size.far_cycles * (sums + vectors + kStepInstructions)});
  const double lines = size.vector_part * vectors;
  const double fetch = size.vector_cycles * (size.columns_in_order ? lines : std::ceil(lines)) +
                       size.row_cycles * static_cast<double>(rows);
  const double step = busy + kLoopCycles + fetch;
  return static_cast<double>(size.steps) * step + kTileCycles + kElementCycles * sums;
}

/// What uneven blocks of so many columns cost. One core does not mind, and of two the one that
/// works on is faster while the other waits, so that little counts for nothing.
double blocks_share(const ContractionSize& size, int64_t columns, int64_t products) {
  const int64_t blocks = ceil_div(size.columns, columns);
  if (products * blocks >= kManyTasks * size.cores) return 1;
  if (size.cores > 2) return imbalance(products * blocks, size.cores);
  int64_t sooner = 0;
  int64_t later = 0;
  for (int64_t i = 0; i < products * blocks; ++i) {
    sooner += std::min(columns, size.columns - i % blocks * columns);
    if (sooner > later) std::swap(sooner, later);
  }
  const double longer = static_cast<double>(later - sooner) / static_cast<double>(sooner + later);
  // Squared: a difference of a tenth costs 2 %, of a half it costs 50 %.
  return 1 + 2 * longer * longer;
}

ContractionSize of_panels(ContractionSize size) {
  size.row_cycles = size.rows_in_order ? kRowInOrderCycles : kFarRowCycles;
  size.vector_cycles = kPanelVectorCycles;
  size.columns_in_order = true;
  return size;
}

/// Of columns that are read where they are, tile by tile, by all rows.
ContractionSize of_far_columns(ContractionSize size) {
  size.few_tasks = false;
  size.far_cycles = kFarCycles;
  return size;
}

/// The shapes whose sums fit into the registers.
template <typename Visit>
void for_each_shape(const ContractionSize& size, Visit&& visit) {
  const int64_t most_vectors = std::min(kMostVectors, ceil_div(size.columns, size.register_lanes));
  for (int64_t vectors = std::min(size.least_vectors, most_vectors); vectors <= most_vectors;
       ++vectors) {
    for (int64_t rows = 1; rows <= std::min(size.rows, kMostRows); ++rows) {
      const int64_t sums = rows * vectors;
      // Beside the sums: the vectors of a row of B, the element of A that is broadcast, and what is
      // still to be added.
      const int64_t beside = vectors * size.column_registers + 1 + size.term_registers;
      if (sums > size.most_sums || sums + beside > size.registers) break;
      visit(TileShape{rows, std::min(size.columns, vectors * size.register_lanes)});
    }
  }
}

}  // namespace

ContractionSize size_on(const Machine& machine, int64_t register_lanes) {
  const int64_t element_bytes = machine.vectors.bytes / register_lanes;
  return {.register_lanes = register_lanes,
          .registers = machine.vectors.registers,
          .multiply_adds = machine.multiply_adds,
          .latency = machine.latency,
          .loads = machine.loads,
          .l1_elements = machine.l1_bytes / element_bytes,
          .l2_elements = machine.l2_bytes / element_bytes,
          .cores = machine.cores > kFewCores ? machine.cores : 2,
          .block_tasks = kBlockTasks * machine.cores,
          .most_sums = machine.vectors.registers * 3 / 4,
          .vector_part = static_cast<double>(machine.vectors.bytes) / kLineBytes};
}

double imbalance(int64_t tasks, int64_t cores) {
  if (tasks >= kManyTasks * cores) return 1;
  return static_cast<double>(cores * ceil_div(tasks, cores)) / static_cast<double>(tasks);
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
  if (!size.few_tasks || full_rows >= kManyTasks * size.cores) return all;
  if (size.cores > 2) return all * imbalance(ceil_div(size.rows, tile.rows), size.cores);
  // The rest is done by the core that has less to do.
  const double longer = full_rows % 2 == 0 ? static_cast<double>(full_rows) * full + 2 * rest
                                           : static_cast<double>(full_rows + 1) * full;
  return std::max(all, longer);
}

TileShape best_tile(const ContractionSize& size) {
  TileShape best{1, std::min(size.columns, size.register_lanes)};
  double least = std::numeric_limits<double>::infinity();
  for_each_shape(size, [&](const TileShape& tile) {
    const double cycles = tile_cycles(size, tile);
    if (cycles >= least) return;
    least = cycles;
    best = tile;
  });
  return best;
}

TileShape best_panel_tile(ContractionSize size) { return best_tile(of_panels(size)); }

TileShape best_far_tile(ContractionSize size) { return best_tile(of_far_columns(size)); }

bool gains_by_copy(const ContractionSize& size) {
  const ContractionSize far = of_far_columns(size);
  ContractionSize near = of_panels(size);
  near.few_tasks = false;
  const auto vectors = static_cast<double>(ceil_div(size.columns, size.register_lanes));
  const double copy =
      vectors * static_cast<double>(size.steps) * kCopiedVectorCycles * size.vector_part;
  return copy + tile_cycles(near, best_tile(near)) < tile_cycles(far, best_tile(far));
}

bool gains_by_rows_copied(const ContractionSize& size) {
  if (size.rows == 0 || size.columns == 0) return true;
  const auto tiles = static_cast<double>(ceil_div(size.columns, best_tile(size).lanes));
  // With one unit for multiply-adds a step takes twice as long, in which the elements come.
  const double saved = (kFarRowCycles - kRowInOrderCycles) * size.multiply_adds / 2;
  return tiles * saved > kCopiedRowCycles;
}

int64_t best_depth(const ContractionSize& size, int64_t lanes) {
  const int64_t most = std::min(near_elements(size) / lanes, size.steps / 2);
  for (int64_t depth = most; depth >= kLeastDepth; --depth) {
    if (size.steps % depth == 0) return depth;
  }
  return 0;
}

BlockShape best_blocks(ContractionSize size, int64_t products) {
  size = of_panels(size);
  BlockShape best{best_tile(size), 1};
  double least = std::numeric_limits<double>::infinity();
  for_each_shape(size, [&](const TileShape& tile) {
    const double cycles = tile_cycles(size, tile);
    for (const int64_t panels : {1, 2, 3, 4, 6, 8}) {
      const int64_t blocks = ceil_div(size.columns, panels * tile.lanes);
      const bool is_too_much = products * blocks < size.block_tasks ||
                               panels * tile.lanes * size.steps > panel_elements(size);
      if (is_too_much && panels > 1) return;
      const double all = cycles * blocks_share(size, panels * tile.lanes, products) *
                         (1 + kRowsAgain / static_cast<double>(panels));
      if (all >= least) continue;
      least = all;
      best = {tile, panels};
    }
  });
  return best;
}

bool is_near(const ContractionSize& size, int64_t columns) {
  return columns * size.steps <= near_panel(size) && size.rows * size.steps <= block_elements(size);
}

RowBlocks best_row_blocks(ContractionSize size) {
  RowBlocks best{best_tile(size), 1};
  if (!size.few_tasks) return best;
  const double again = size.columns % size.register_lanes == 0 ? kColumnsAgain : kRaggedAgain;
  double least = tile_cycles(size, best.tile) * (1 + again);
  const int64_t work = size.columns * size.steps;
  for_each_shape(size, [&](const TileShape& tile) {
    if (size.columns <= 2 * tile.lanes || !is_near(size, tile.lanes)) return;
    const int64_t full = size.rows / tile.rows;
    ContractionSize alone = size;
    alone.few_tasks = false;
    // few_tasks would count the imbalance of single tiles; below it is counted for blocks.
    const double cycles = tile_cycles(alone, tile);
    for (int64_t tiles = 2; tiles <= std::min(full / 2, kMostTiles); ++tiles) {
      const int64_t rows = tiles * tile.rows;
      const int64_t tasks = ceil_div(size.rows, rows);
      if (full % tiles != 0 || (tasks < size.block_tasks && rows * work > kBlockWork)) continue;
      if (size.cores > 2 && tasks < size.cores) continue;
      const int64_t later =
          std::max(ceil_div(tasks - 1, 2) * rows, size.rows - ceil_div(tasks - 1, 2) * rows);
      const double share = 2 * static_cast<double>(later) / static_cast<double>(size.rows);
      const double all = cycles * share * (1 + again / static_cast<double>(tiles));
      if (all >= least) continue;
      least = all;
      best = {tile, tiles};
    }
  });
  return best;
}

int64_t best_block(const ContractionSize& size, int64_t tile_rows) {
  int64_t best = 1;
  double least = 0;
  for (const int64_t tiles : {4, 8, 16, 32}) {
    const int64_t rows = tiles * tile_rows;
    const int64_t tasks = ceil_div(size.rows, rows);
    if (best > 1 && (tasks < size.block_tasks || rows * size.steps > block_elements(size))) break;
    const double whole = static_cast<double>(tasks * rows) / static_cast<double>(size.rows);
    const double time =
        imbalance(tasks, size.cores) * whole * (1 + kFetchedRows / static_cast<double>(rows));
    if (best > 1 && time >= least) continue;
    least = time;
    best = tiles;
  }
  return best;
}

}  // namespace kiln::autoschedule
