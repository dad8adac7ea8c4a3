#pragma once

#include <cstdint>

#include "compiler/autoschedule/recognise/machine.h"

namespace kiln::autoschedule {

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
  int64_t l1_elements = 12 * 1024;
  int64_t l2_elements = 512 * 1024;
  int64_t cores = 2;             // among which tasks are uneven
  int64_t block_tasks = 8;       // blocks that cores share, at least
  bool few_tasks = false;        // nothing but tiles of rows is shared among the cores
  int64_t least_vectors = 1;     // of a tile, where there are so many columns
  int64_t column_registers = 1;  // for a vector of columns, beside its sums
  int64_t term_registers = 0;    // for a product that another instruction adds
  int64_t most_sums = 24;        // registers of a tile; the others hold what is loaded ahead
  // Cycles of a step for a line of columns, from L2, and for an element of a row.
  double vector_cycles = 0.6;
  double vector_part = 1;         // of a line that a vector is
  bool columns_in_order = false;  // those of a step lie next to those of the one before
  double row_cycles = 0;
  bool rows_in_order = false;  // elements of a tile's rows lie side by side
  // Cycles for which columns from beyond L2 hold up each instruction of a step.
  double far_cycles = 0;
};

/// Of tiles in these registers, each with so many elements; the extents are left open.
ContractionSize size_on(const Machine& machine, int64_t register_lanes);

/// Rows of the row factor and columns (lanes) whose sums are in registers while the reduction runs.
struct TileShape {
  int64_t rows = 0;
  int64_t lanes = 0;
};

/// How much longer so many cores take for equal tasks than their part of the time of one.
double imbalance(int64_t tasks, int64_t cores);

/// About how many cycles a core takes for all tiles of this shape, tails included.
double tile_cycles(const ContractionSize& size, const TileShape& tile);

/// The shape that takes the fewest.
TileShape best_tile(const ContractionSize& size);

/// The shape that takes the fewest where the columns are copied next to each other.
TileShape best_panel_tile(ContractionSize size);

/// The shape that takes the fewest where large column factors are read where they are.
TileShape best_far_tile(ContractionSize size);

/// Whether a large column factor is better copied, a tile's columns at a time, than read where it
/// is by all tiles of rows.
bool gains_by_copy(const ContractionSize& size);

/// Whether rows that lie across the sum are better copied than read where they are, a piece of each
/// line for each tile of columns.
bool gains_by_rows_copied(const ContractionSize& size);

/// How many steps of the reduction few rows take along copied columns that then are still in L1,
/// without a remainder; 0 where there is no such number.
int64_t best_depth(const ContractionSize& size, int64_t lanes);

/// Tiles, and how many of their columns a core copies at once for all rows.
struct BlockShape {
  TileShape tile;
  int64_t panels = 1;
};

/// The blocks that take the fewest cycles where cores share those of so many products of this size.
BlockShape best_blocks(ContractionSize size, int64_t products);

/// Whether tiles of so many columns stay in L1 while tiles of rows pass by, which come from L2.
bool is_near(const ContractionSize& size, int64_t columns);

/// Tiles, and how many of their rows pass by one tile's columns before the next ones; 1: none but
/// its own. Cores share the blocks of a single product; no tile is left out of a block, so that
/// there is no more code for it.
struct RowBlocks {
  TileShape tile;
  int64_t tiles = 1;
};
RowBlocks best_row_blocks(ContractionSize size);

/// How many tiles of rows read a panel of the column factor before the next one is read.
int64_t best_block(const ContractionSize& size, int64_t tile_rows);

}  // namespace kiln::autoschedule
