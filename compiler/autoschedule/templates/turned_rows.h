#pragma once

#include <optional>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/templates/sketch.h"

namespace kiln::autoschedule {

/// Rows that are reduced one element after the other, as many at once as a vector has lanes: where
/// the order of what is combined may not change. Nothing where there are few rows, or short ones,
/// or nobody knows how many, or where they do not lie along the reduction.
std::optional<Sketch> turned_rows_sketch(const Chooser& chooser, StageId stage,
                                         bool may_be_parallel);

}  // namespace kiln::autoschedule
