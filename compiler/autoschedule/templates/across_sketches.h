#pragma once

#include <vector>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/templates/sketch.h"

namespace kiln::autoschedule {

/// The sketch of a stage of elements, whose parameters begin with lanes and end with whether cores
/// share it, with those in blocks where it reads tensors across, the
/// cheapest first. Inside of the loops of others, where blocks have no room, it stays the first.
std::vector<Sketch> with_blocks_across(const Chooser& chooser, StageId stage, Sketch elements,
                                       bool may_be_parallel);

}  // namespace kiln::autoschedule
