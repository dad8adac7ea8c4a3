#pragma once

#include <vector>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/templates/sketch.h"

namespace kiln::autoschedule {

/// For CUDA: elements of which some are read along another axis than they are stored along. Each
/// block fetches a tile of those to shared memory, so that its threads read and store side by side.
/// None where no element is read so, or an axis is known to be shorter than a tile.
std::vector<Sketch> shared_transpose_sketches(const Chooser& chooser, StageId id);

}  // namespace kiln::autoschedule
