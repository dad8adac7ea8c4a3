#pragma once

#include <vector>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/recognise/epilogue.h"
#include "compiler/autoschedule/templates/sketch.h"
#include "compiler/autoschedule/templates/split_sums.h"

namespace kiln::autoschedule {

/// For CUDA: a contraction of which each block computes a tile. Its threads fetch the tile's parts
/// of both factors to shared memory together, some steps of the reduction at a time, and each of
/// them keeps the sums of a small tile of its own in registers.
///
/// Each of `prologues`, some of prologues_of_block_tiles(), the threads compute of what they fetch,
/// or a launch stores it before. The one that is predicted to be fastest comes first. None where
/// the stage is no contraction, where it is known to be smaller than a tile, or where the parts are
/// of no constant size, as those of a window of any size.
std::vector<Sketch> block_tile_sketches(const Chooser& chooser, StageId id,
                                        const std::optional<Epilogue>& epilogue,
                                        const std::vector<StageId>& prologues);

/// The stages in front of the factors that such tiles may compute.
std::vector<StageId> prologues_of_block_tiles(const StageGraph& graph, StageId id);

/// The stage that puts something around a factor, where all such tiles of a stage do that when they
/// fetch it: then it is no stage by itself.
std::optional<StageId> padding_of_block_tiles(const StageGraph& graph, StageId id);

/// What the fastest of them takes with its sum in parts; empty where there is none, or where a size
/// is not known.
CyclesOfParts block_tile_cycles(const Chooser& chooser, StageId id);

/// The same with the sum as a whole, for comparison with other templates. All sizes are known,
/// and there are tiles.
double whole_tile_cycles(const Chooser& chooser, StageId id);

/// Whether a stage has such tiles, or a reduction inside of an expression would have them as one.
bool has_block_tiles(const StageGraph& graph, StageId id);

}  // namespace kiln::autoschedule
