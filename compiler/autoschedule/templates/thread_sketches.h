#pragma once

#include <vector>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/templates/sketch.h"

namespace kiln::autoschedule {

/// For CUDA, of any stage with loops of its own, and never none: a transpose in tiles; else one
/// thread an element, or for some neighbours, or of a scatter one for each of what cannot meet.
std::vector<Sketch> thread_sketches(const Chooser& chooser, StageId root);

}  // namespace kiln::autoschedule
