#pragma once

#include <optional>
#include <vector>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/templates/row_line.h"
#include "compiler/autoschedule/templates/step_writer.h"

namespace kiln::autoschedule {

/// Whether a reduction is along elements that are neighbours, each read once, and its order may
/// change: one that threads divide. Reductions inside of expressions are asked for as well.
bool is_row_reduction(const Chooser& chooser, StageId id);

/// For CUDA: stages that one block computes row by row, its threads side by side along the row; of
/// rows that are known to be short, one thread computes each.
struct RowThreads {
  StageId last = 0;                 // has the loop over rows; a reduction, where it is alone
  std::vector<StageId> reductions;  // of the row, computed in that loop
  std::vector<StageId> inlined;
  size_t dimensions = 0;  // those of `last` that say which row
  bool are_short = false;
  RowLine line = {};
};

/// What can run so; nothing where the stage is better one thread an element.
std::optional<RowThreads> row_threads_of(const Chooser& chooser, StageId last);

void bind_rows(const StageGraph& graph, StepWriter& steps, const RowThreads& rows);

}  // namespace kiln::autoschedule
