#pragma once

#include "compiler/language/tables/step.h"
#include "compiler/schedule/bounds/nest.h"
#include "compiler/schedule/graph/stage_graph.h"
#include "compiler/target.h"

namespace kiln::schedule {

/// Applies the steps in order to the records, then checks what only the whole schedule shows: that
/// attached stages are read inside their loop alone. Throws in the user's names, with the note
/// "at step 3: split(k, factor=4)" and the line of the step.
void apply_steps(StageGraph& graph, const language::Schedule& schedule);

/// Checks what needs the extents of loops: those that are vectorised or unrolled are constants, no
/// more is unrolled than the limit, thread axes are as long as the target has them, and no two
/// nested loops are the same thread axis, unless threads fill shared memory together.
void check_loops(const StageGraph& graph, const NestPlan& plan, const language::Schedule& schedule,
                 TargetKind target, const CompileOptions& options);

}  // namespace kiln::schedule
