#pragma once

#include <optional>
#include <vector>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/recognise/epilogue.h"
#include "compiler/autoschedule/templates/sketch.h"
#include "compiler/autoschedule/templates/split_sums.h"

namespace kiln::autoschedule {

/// Whether a stage, or a reduction inside of an expression, is the product of at most 16 rows with
/// many others that lie along the sum too, and the order of that may change.
bool is_few_rows_product(const Chooser& chooser, StageId id);

/// Parts of the sum of such a product, where its blocks are too few.
std::optional<SumSplit> split_of_few_rows(const Chooser& chooser, StageId id);

/// About how many cycles such a product takes as a whole. All sizes are known.
double few_rows_cycles(const Chooser& chooser, StageId id);

/// For CUDA: products of a few rows with many others that lie along the sum too, as those of a
/// layer with a small batch. A block has all of the few and some of the others, which so are read
/// once; its threads divide the sum. None where nothing is few, or the order of the sum has to
/// stay.
std::vector<Sketch> few_rows_sketches(const Chooser& chooser, StageId id,
                                      const std::optional<Epilogue>& epilogue);

}  // namespace kiln::autoschedule
