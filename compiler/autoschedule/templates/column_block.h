#pragma once

#include <algorithm>
#include <vector>

#include "compiler/autoschedule/recognise/chooser.h"

namespace kiln::autoschedule {

/// How a block reduces columns: its threads are rows of vectors.
struct ColumnBlock {
  AxisId divided = 0;   // the reduction axis whose elements the rows of threads divide
  int64_t lanes = 1;    // of a vector
  int64_t vectors = 1;  // of a row of a block
  int64_t rows = 1;     // that the block's threads reduce at once
  /// Data axes of few elements along which the same columns are read: of a few rows times a matrix.
  std::vector<AxisId> few;

  bool is_few(AxisId axis) const { return std::ranges::find(few, axis) != few.end(); }
  int64_t threads() const { return rows * vectors; }
};

/// The data axes along which nothing moves that lies along the last one.
std::vector<AxisId> few_of_columns(const StageGraph& graph, const Stage& stage);

/// What a block has of the stage, or of each of so many equal parts of its longest reduction axis.
ColumnBlock column_block_of(const Chooser& chooser, StageId id, int64_t parts = 1);

/// About how many cycles the reduction takes in such blocks, as a whole or in parts. All sizes are
/// known.
double column_cycles(const Chooser& chooser, StageId id, int64_t parts = 1);

/// And in a thread for each result.
double element_cycles(const Chooser& chooser, StageId id);

}  // namespace kiln::autoschedule
