#pragma once

#include "compiler/schedule/bounds/nest.h"

namespace kiln::schedule {

/// The dimension along which a stage with a rolling_buffer keeps what iterations of the loop it is
/// computed at have in common; -1 for others, and where that loop has one iteration. Its nest
/// gets a guard, so that it computes only what is new. Nests of its consumers must exist.
///
/// Throws InvalidArgument, with the step's line, where iterations have nothing in common or the
/// first of them may be left out.
int roll(const StageGraph& graph, NestPlan& plan, StageId stage, const analysis::Facts& sizes);

}  // namespace kiln::schedule
