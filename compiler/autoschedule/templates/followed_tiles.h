#pragma once

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/templates/sketch.h"

namespace kiln::autoschedule {

/// For each sum of products whose elements one stage alone reads, its own each: that stage in the
/// tiles of the sum, as the first of its sketches.
void follow_tiles(const Chooser& chooser, std::vector<StageSketches>& stages);

}  // namespace kiln::autoschedule
