#pragma once

#include <vector>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/templates/sketch.h"

namespace kiln::autoschedule {

/// For CUDA: a contraction of float16 or bfloat16 into float32 whose tiles are computed by tensor
/// cores: each warp has a part of the block's tile, and each thread the sums that a lane of a
/// matrix instruction has.
///
/// The one that is predicted to be fastest comes first. None where the GPU has no such
/// instructions, where the order of the sum has to stay, or where a side is shorter than a tile.
std::vector<Sketch> matrix_tile_sketches(const Chooser& chooser, StageId id);

}  // namespace kiln::autoschedule
