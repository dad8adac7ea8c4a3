#pragma once

#include "compiler/schedule/bounds/nest.h"
#include "compiler/target.h"

namespace kiln::schedule {

/// What became of the steps that this target has no use for, or that the loops left nothing to do.
void add_hint_notes(const StageGraph& graph, const NestPlan& plan, TargetKind target,
                    std::vector<std::string>& notes);

}  // namespace kiln::schedule
