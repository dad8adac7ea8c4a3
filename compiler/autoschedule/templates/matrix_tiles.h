#pragma once

#include <optional>
#include <vector>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/recognise/epilogue.h"
#include "compiler/autoschedule/templates/sketch.h"
#include "compiler/autoschedule/templates/split_sums.h"

namespace kiln::autoschedule {

/// For CUDA: a contraction of short types whose tiles are computed by tensor cores: each warp has a
/// part of the block's tile, and each thread the sums that a lane of a matrix instruction has. The
/// sides of a tile are an axis each, or all that there are, as the places of images.
///
/// Each of `prologues`, some of prologues_of_matrix_tiles(), the threads compute of what they
/// fetch, or a launch stores it before. The one that is predicted to be fastest comes first. None
/// where the GPU has no such instructions, where the order of the sum has to stay, or where a side
/// is shorter than a tile.
std::vector<Sketch> matrix_tile_sketches(const Chooser& chooser, StageId id,
                                         const std::optional<Epilogue>& epilogue,
                                         const std::vector<StageId>& prologues);

/// The stage that puts something around a factor, where such tiles do that when they fetch it: then
/// it is no stage by itself.
std::optional<StageId> padding_of_matrix_tiles(const Chooser& chooser, StageId id);

/// What the fastest of them takes with its sum in parts; empty where there is none.
CyclesOfParts matrix_tile_cycles(const Chooser& chooser, StageId id);

}  // namespace kiln::autoschedule
