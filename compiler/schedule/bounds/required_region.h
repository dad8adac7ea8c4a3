#pragma once

#include <vector>

#include "compiler/analysis/prove.h"
#include "compiler/schedule/bounds/nest.h"
#include "compiler/target.h"

namespace kiln::schedule {

/// The box around all that is read of a stage that is attached inside a loop while that loop stands
/// still. Nests of its consumers must exist.
std::vector<Region> region_needed(const StageGraph& graph, const NestPlan& plan, StageId stage,
                                  const analysis::Facts& sizes, TargetKind target);

}  // namespace kiln::schedule
