#pragma once

#include "compiler/schedule/bounds/nest.h"
#include "compiler/schedule/steps/steps.h"
#include "compiler/target.h"

namespace kiln::schedule {

/// Has the readers of each output that is inline read an inline copy of it; the output itself is
/// computed at the root, since the caller sees it.
void keep_inlined_outputs(StageGraph& graph);

/// Whether each output inside a loop is computed whole there, no element by two iterations that run
/// at once.
void check_inner_outputs(const StageGraph& graph, const NestPlan& plan,
                         const language::Schedule& schedule, TargetKind target);

}  // namespace kiln::schedule
