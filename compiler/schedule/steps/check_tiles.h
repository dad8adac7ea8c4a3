#pragma once

#include "compiler/schedule/bounds/nest.h"

namespace kiln::schedule {

/// Whether the loops from `loop` inwards have the extents of the intrinsic of its axis. Throws
/// Unsupported TENSORIZE.
void check_tile(const StageGraph& graph, const Nest& nest, StageId stage, const Loop& loop);

}  // namespace kiln::schedule
