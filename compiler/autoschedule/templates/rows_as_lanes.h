#pragma once

#include <optional>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/templates/sketch.h"

namespace kiln::autoschedule {

/// Reductions of which a row has too few results for a vector, or one of a few elements: as many
/// rows at once as a vector has lanes. Nothing where there are fewer rows.
std::optional<Sketch> rows_as_lanes_sketch(const Chooser& chooser, StageId stage,
                                           bool may_be_parallel);

}  // namespace kiln::autoschedule
