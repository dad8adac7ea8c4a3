#pragma once

#include "compiler/schedule/bounds/nest.h"
#include "compiler/target.h"

namespace kiln::schedule {

/// For each live stage its nest over the region that its consumers read, and its storage.
///
/// Consumers come first. A stage at the root computes whole tensors. One attached inside a loop
/// computes what the readers inside that loop need while it stands still: the union of all their
/// reads, with the loops further in run through. Where no better bounds are found, or an extent
/// would depend on a loop, it is the whole dimension.
///
/// Buffers inside the threads or blocks of a GPU are local or shared.
NestPlan infer_bounds(const StageGraph& graph, TargetKind target);

}  // namespace kiln::schedule
