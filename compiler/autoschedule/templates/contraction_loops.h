#pragma once

#include <string_view>

#include "compiler/autoschedule/recognise/product_groups.h"
#include "compiler/autoschedule/templates/stage_schedules.h"

namespace kiln::autoschedule {

/// The loops of a tiled contraction, the same for all sketches of it.
struct Tiling {
  StageId stage = 0;
  Contraction contraction;
  std::vector<AxisId> batch;  // data axes that are neither row nor column
  std::vector<AxisId> reduce;
  std::vector<AxisId> panel_batch;  // those of the batch that the column factor depends on
  std::vector<AxisId> row_batch;    // and the row factor
  language::TensorId panel;         // the column factor
  language::TensorId rows;          // the row factor
  int64_t register_lanes = 1;
  bool has_many_cores = false;  // more than every kernel is planned for
  ProductGroup group;
  // Cycles of copying all rows, and all columns, where one core does it, which takes less than
  // waking others; 0 where they share it.
  double row_copy_alone = 0;
  double panel_copy_alone = 0;
  bool widens_rows = false;  // the row factor is of 16-bit floats, and its sums of longer ones
};

Tiling tiling_of(const Chooser& chooser, StageId id, const Contraction& contraction);

/// Whether a copy with these axes has the elements that `read` reads in another order, and no more
/// of them.
bool only_reorders(const StageGraph& graph, const ir::TensorRead& read,
                   const std::vector<AxisId>& axes);

/// Whether neighbours in memory are neighbours along one of the axes.
bool lies_along(const StageGraph& graph, const ir::TensorRead& read,
                const std::vector<AxisId>& axes);

/// Whether columns that lie along the reduction are copied to panels of so many lanes in squares of
/// registers.
bool turns_panels(const StageGraph& graph, const Tiling& tiling, int64_t lanes);

std::vector<AxisId> joined(std::initializer_list<std::vector<AxisId>> parts);

/// A split by `factor`, or by the extent where that is known to be less.
std::pair<AxisId, AxisId> split_tile(const StageGraph& graph, StepWriter& steps, StageId stage,
                                     AxisId axis, int64_t factor);

/// The loops over tiles, and those in a tile.
struct TileLoops {
  AxisId rows;
  AxisId row;
  AxisId columns;
  AxisId column;
};

/// Tiles of so many rows and columns as the values "rows" and `columns` say.
TileLoops split_tiles(const StageGraph& graph, const Tiling& tiling, StepWriter& steps,
                      const Values& values, std::string_view columns);

/// The loops over the reduction, and in them that over the products that an instruction adds: none
/// where it adds one.
struct Reduction {
  std::vector<AxisId> loops;
  std::vector<AxisId> group;
};
Reduction split_groups(const Tiling& tiling, StepWriter& steps);

/// Copies elements to a wider type in vectors along a loop of so many.
void widen_along(StepWriter& steps, StageId copy, AxisId along, int64_t extent);

/// Registers of a tile with the values "rows" and "lanes".
int64_t registers_of_tile(const Tiling& tiling, const Values& values);

/// Steps of a window are few: as loops they would end as soon as they have begun. `reduce`: the
/// loops of the stage for the axes of the reduction; `sums`: registers of its tile.
void unroll_window(const StageGraph& graph, const Tiling& tiling, StageId stage,
                   const std::vector<AxisId>& reduce, StepWriter& steps, int64_t sums);

/// Whether it writes out steps of a tile with so many sums.
bool writes_out_window(const StageGraph& graph, const Tiling& tiling, int64_t sums);

/// Whether cores share the copy of the rows of a product that they share.
bool shares_rows(const Tiling& tiling, bool parallel);

// What sketches write. Of the values, "rows" and "lanes" are the tile; "parallel" is for all.

/// Rows of vectors of columns: each step of the reduction reads one vector of columns and adds it,
/// times one element a row. "depth": steps of the outermost reduction axis before the next tile, or
/// 0; "columns first": which loop over tiles is outside; "rows of a panel": tiles of rows that pass
/// by a tile's columns before the next ones, or 0: just one; "rows in order": the row factor is
/// copied first, and "depth" is 0.
void write_outer_products(const StageGraph& graph, const Tiling& tiling, StepWriter& steps,
                          const Values& values);

/// The same with the columns outermost, whose part of the column factor is copied next to each
/// other first: it is read once for each tile of rows. "panels at once": tiles of columns that are
/// copied together, and that a tile of rows passes by, or with "columns first" all tiles of rows
/// one of them; "depth": steps of the outermost reduction axis that are copied and passed by before
/// the next, or 0: all; "rows in order": the row factor is copied too, before all, and "depth" is
/// 0.
void write_packed_panels(const StageGraph& graph, const Tiling& tiling, StepWriter& steps,
                         const Values& values);

/// The column factor is copied first, in the order in which the tiles read it: a panel for each
/// vector of columns, with the steps of the reduction next to each other. "rows of a panel": tiles
/// that read a panel before the next one, or 0: just one; "rows in order": the row factor is copied
/// too; "rows first": tiles of rows stay for all products of the batch that read them.
void write_panels_in_order(const StageGraph& graph, const Tiling& tiling, StepWriter& steps,
                           const Values& values);

/// Tiles of rows that stand in the loop over blocks of rows of another stage, or, with "rows of a
/// block" more than 0, in one of their own, which is returned: then it is cut into these first. The
/// column factor is copied beforehand, as for panels in order. "columns first": a panel stays in L1
/// while all rows of the block pass.
AxisId write_rows_of_block(const StageGraph& graph, const Tiling& tiling, StepWriter& steps,
                           const Values& values);

/// Dot products of vectors along the reduction, several rows and "columns" at once. "columns
/// first": all rows pass by some columns before the next; "columns in order": the column factor is
/// copied first, so that its columns lie along the reduction.
void write_dots(const StageGraph& graph, const Tiling& tiling, int64_t lanes, StepWriter& steps,
                const Values& values);

}  // namespace kiln::autoschedule
