#pragma once

#include <optional>
#include <vector>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/recognise/epilogue.h"
#include "compiler/autoschedule/templates/sketch.h"
#include "compiler/autoschedule/templates/split_sums.h"

namespace kiln::autoschedule {

/// Whether a reduction goes over rows of which neighbours belong to different results, and its
/// order may change: one whose rows threads divide among them. Reductions inside of expressions are
/// asked for as well.
bool is_column_reduction(const Chooser& chooser, StageId id);

/// Parts of the rows of such a reduction, where its blocks are too few.
std::optional<SumSplit> split_of_columns(const Chooser& chooser, StageId id);

/// For CUDA: a block reduces some columns side by side, each of its threads some of the rows.
std::vector<Sketch> column_thread_sketches(const Chooser& chooser, StageId id,
                                           const std::optional<Epilogue>& epilogue);

}  // namespace kiln::autoschedule
