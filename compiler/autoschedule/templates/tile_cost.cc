// How long a contraction takes in tiles of a shape, in cycles of one core; the smallest wins.
//
//   1024 x 1024 x 1024, 32 registers of 16 lanes  ->  about 8 x 48, a few panels of B a block
//
// A step of a tile costs the largest of its multiply-adds, the latency of one, and its loads.
// docs/performance/tried.md has what other shapes gave.
#include "compiler/autoschedule/templates/tile_cost.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/autoschedule/templates/transfers.h"
#include "runtime/core/cpu_name.h"

namespace kiln::autoschedule {
namespace {

// What a vector was on Sapphire Rapids: cycles of transfers are for a line of the cache.
constexpr double kLineBytes = Transfers::kLineBytes;
// With as many, and as few rows as then have registers, loads are no bottleneck any more.
constexpr int64_t kMostVectors = 4;

// A block of rows of the row factor takes half of L2 while all panels pass.
int64_t block_elements(const ContractionSize& size) { return size.l2_elements / 2; }
// Rows of several panels come from L2 one after the other, an element of each for every step, in
// parts of what a line of columns takes.
constexpr double kRowOfLine = 0.6;
// A panel takes three quarters of L1 while rows pass, or half of it where these are read for it
// alone.
int64_t near_panel(const ContractionSize& size) { return size.l1_elements * 3 / 4; }
int64_t near_elements(const ContractionSize& size) { return size.l1_elements / 2; }
// Steps that are worth to load and store the sums: a sum comes and goes in 2 cycles
// (`element_cycles`) and takes a half for each step, so that this is less than a tenth.
constexpr int64_t kLeastDepth = 48;

// Sums of so few steps are no loop: a core computes several tiles at once, none of which waits for
// an addition, and stores as many sums of a tile meanwhile as it has steps. Tiles of 4 to 256 sums
// of 512 x 3 x 512 to 512 x 16 x 512 on a Zen 4: with 3 steps 14 us in tiles of 4 x 16 and 20 to 23
// in larger ones, with 8 steps 37 to 38 up to 8 x 16.
constexpr int64_t kFewSteps = 8;

double loads_of_step(const ContractionSize& size, int64_t rows, double vectors) {
  return static_cast<double>(rows) + size.vector_loads * vectors;
}

double one_tile(const ContractionSize& size, int64_t rows, int64_t columns) {
  if (rows == 0 || columns == 0) return 0;
  const auto vectors = static_cast<double>(ceil_div(columns, size.register_lanes));
  const double lines = size.vector_part * vectors;
  const double fetch = size.vector_cycles * (size.columns_in_order ? lines : std::ceil(lines)) +
                       size.row_cycles * static_cast<double>(rows) +
                       size.load_part * loads_of_step(size, rows, vectors) / size.loads;
  return tile_core_cycles(size, rows, columns) + static_cast<double>(size.steps) * fetch;
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
          .tile_cycles = machine.tile_cycles,
          .element_cycles = machine.element_cycles,
          .dots = machine.dots,
          .vector_part = static_cast<double>(machine.vectors.bytes) / kLineBytes};
}

std::vector<TileShape> tile_shapes(const ContractionSize& size) {
  std::vector<TileShape> shapes;
  const int64_t all_vectors = size.whole_vectors
                                  ? std::max<int64_t>(size.columns / size.register_lanes, 1)
                                  : ceil_div(size.columns, size.register_lanes);
  const int64_t most_vectors = std::min(kMostVectors, all_vectors);
  for (int64_t vectors = std::min(size.least_vectors, most_vectors); vectors <= most_vectors;
       ++vectors) {
    for (int64_t rows = 1; rows <= std::min(size.rows, size.most_rows); ++rows) {
      const int64_t sums = rows * vectors;
      // Beside the sums: the vectors of a row of B, the element of A that is broadcast, and what is
      // still to be added.
      const int64_t beside = vectors * size.column_registers + 1 + size.term_registers;
      if (sums > size.most_sums || sums + beside > size.registers) break;
      shapes.push_back({rows, std::min(size.columns, vectors * size.register_lanes)});
    }
  }
  return shapes;
}

double tile_core_cycles(const ContractionSize& size, int64_t rows, int64_t columns) {
  if (rows == 0 || columns == 0) return 0;
  const auto vectors = static_cast<double>(ceil_div(columns, size.register_lanes));
  const double sums = static_cast<double>(rows) * vectors;
  // The longest of three bottlenecks: the ports of multiply-adds, the chain of one sum, and the
  // ports of loads, on which an element of a row is broadcast as it is loaded.
  const double turned = vectors * static_cast<double>(size.column_registers - 1);
  const double ports = std::max((sums + turned) / size.multiply_adds,
                                loads_of_step(size, rows, vectors) / size.loads);
  const auto steps = static_cast<double>(size.steps);
  const double signs = size.sign_cycles * static_cast<double>(rows);
  if (size.steps <= kFewSteps)
    return steps * (ports + signs) + size.element_cycles * std::max(sums - steps, 0.0) +
           size.loop_cycles;
  const double busy = std::max(ports, size.latency);
  return steps * (busy + signs + size.loop_cycles) + size.tile_cycles + size.element_cycles * sums;
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
  for (const TileShape& tile : tile_shapes(size)) {
    const double cycles = tile_cycles(size, tile);
    if (cycles >= least) continue;
    least = cycles;
    best = tile;
  }
  return best;
}

TileShape best_panel_tile(ContractionSize size) {
  size.row_cycles = kRowOfLine * size.vector_cycles;
  size.columns_in_order = true;
  return best_tile(size);
}

int64_t whole_part(int64_t extent, int64_t least, int64_t most) {
  for (int64_t part = most; part >= least; --part) {
    if (extent % part == 0) return part;
  }
  return 0;
}

int64_t best_depth(const ContractionSize& size, int64_t lanes) {
  const int64_t most = std::min(near_elements(size) / lanes, size.steps / 2);
  return whole_part(size.steps, kLeastDepth, most);
}

bool is_near(const ContractionSize& size, int64_t columns) {
  return columns * size.steps <= near_panel(size) && size.rows * size.steps <= block_elements(size);
}

}  // namespace kiln::autoschedule
