#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "compiler/autoschedule/recognise/machine.h"

namespace kiln::autoschedule {

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline double ceil_div(double a, double b) { return std::ceil(a / b); }

/// What a contraction does, in numbers that its tiles depend on.
struct ContractionSize {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t steps = 0;            // of the reduction
  int64_t register_lanes = 16;  // elements of a register
  int64_t registers = 32;
  // Of the machine; the caches in elements.
  double multiply_adds = 2;
  double latency = 4;
  double loads = 2;
  double load_part = 0;     // of its port, that a load takes beside multiply-adds
  double vector_loads = 1;  // that a vector of columns takes: 2 where it lies across two lines
  int64_t l1_elements = 12 * 1024;
  int64_t l2_elements = 512 * 1024;
  int64_t cores = 2;              // among which tasks are uneven
  int64_t block_tasks = 8;        // blocks that cores share, at least
  bool few_tasks = false;         // nothing but tiles of rows is shared among the cores
  int64_t most_rows = 14;         // of a tile
  int64_t least_vectors = 1;      // of a tile, where there are so many columns
  int64_t column_registers = 1;   // for a vector of columns, beside its sums
  int64_t term_registers = 0;     // for a product that another instruction adds
  double sign_cycles = 0;         // of a step for an element of a row whose sign is turned
  int64_t most_sums = 24;         // registers of a tile; the others hold what is loaded ahead
  bool writes_out_steps = false;  // of a window, beside which few registers hold fewer sums
  double loop_cycles = 1.5;       // of the end of an iteration
  double tile_cycles = 30;        // and of a tile, and of each of its sums
  double element_cycles = 2;
  DotCycles dots = {};
  // Cycles of a step for a line of columns, from L2, and for an element of a row.
  double vector_cycles = 0.6;
  double vector_part = 1;         // of a line that a vector is
  bool whole_vectors = false;     // a tile has no vector that is not full, but the last one
  bool columns_in_order = false;  // those of a step lie next to those of the one before
  double row_cycles = 0;
};

/// Of tiles in these registers, each with so many elements; the extents are left open.
ContractionSize size_on(const Machine& machine, int64_t register_lanes);

/// Rows of the row factor and columns (lanes) whose sums are in registers while the reduction runs.
struct TileShape {
  int64_t rows = 0;
  int64_t lanes = 0;
};

/// Of CPUs with AVX-512; others have 16.
inline constexpr int64_t kManyRegisters = 32;

/// From so many tasks a core on, what the last ones leave undone does not count.
inline constexpr int64_t kManyTasks = 16;

// Blocks a core that cores share, at least: with one each, all would wait for the last that is
// woken.
inline constexpr int64_t kBlockTasks = 2;

/// How much longer so many cores take for equal tasks than their part of the time of one.
double imbalance(int64_t tasks, int64_t cores);

/// Shapes whose sums fit into the registers.
std::vector<TileShape> tile_shapes(const ContractionSize& size);

/// About how many cycles a core takes for a tile of so many rows and columns that L1 has.
double tile_core_cycles(const ContractionSize& size, int64_t rows, int64_t columns);

/// What all tiles of so many rows and columns take, of which `one` says what one does: those that
/// are left over have less.
template <typename One>
double sum_of_tiles(const ContractionSize& size, int64_t tile_rows, int64_t tile_columns,
                    const One& one) {
  const int64_t full_rows = size.rows / tile_rows;
  const int64_t full_columns = size.columns / tile_columns;
  const auto across = [&](int64_t rows) {
    return static_cast<double>(full_columns) * one(rows, tile_columns) +
           one(rows, size.columns % tile_columns);
  };
  return static_cast<double>(full_rows) * across(tile_rows) + across(size.rows % tile_rows);
}

/// About how many cycles a core takes for all tiles of this shape, tails included.
double tile_cycles(const ContractionSize& size, const TileShape& tile);

/// The shape that takes the fewest.
TileShape best_tile(const ContractionSize& size);

/// The shape that takes the fewest where the columns are copied next to each other.
TileShape best_panel_tile(ContractionSize size);

/// The largest part of an extent, from `least` to `most`, that leaves nothing over; 0 where there
/// is none.
int64_t whole_part(int64_t extent, int64_t least, int64_t most);

/// How many steps of the reduction few rows take along copied columns that then are still in L1,
/// without a remainder; 0 where there is no such number.
int64_t best_depth(const ContractionSize& size, int64_t lanes);

/// Whether tiles of so many columns stay in L1 while tiles of rows pass by, which come from L2.
bool is_near(const ContractionSize& size, int64_t columns);

}  // namespace kiln::autoschedule
