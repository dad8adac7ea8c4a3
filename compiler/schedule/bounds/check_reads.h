#pragma once

#include "compiler/schedule/graph/stage_graph.h"

namespace kiln::schedule {

/// Refuses reads that are outside of their tensor whatever the sizes are, as X[i + 1] where i runs
/// over all of X: InvalidArgument READ_BOUNDS. Reads in a branch of an if_then_else or select may
/// be meant not to happen and are left to the checks at run time.
///
/// Independent of the schedule: a stage is wrong even where a schedule computes only a part of it.
void refuse_wrong_reads(const StageGraph& graph);

}  // namespace kiln::schedule
