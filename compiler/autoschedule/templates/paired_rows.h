#pragma once

#include <optional>

#include "compiler/autoschedule/templates/reduction_numbers.h"

namespace kiln::autoschedule {

/// Reductions of all rows of one tensor with all rows of another that are no products, in tiles of
/// both. Nothing where other tensors have elements of pairs, or sizes are not known.
std::optional<Sketch> paired_rows_sketch(const Chooser& chooser, StageId stage,
                                         const ReductionVectors& vectors, bool may_be_parallel);

}  // namespace kiln::autoschedule
