#pragma once

#include "compiler/schedule/bounds/nest.h"
#include "compiler/schedule/graph/stage_graph.h"
#include "compiler/target.h"

namespace kiln::schedule {

/// Refuses parts of scans that could not run at once, or whose results would be others than those
/// of the steps one by one, where that is not asked for.
void check_scan_parts(const StageGraph& graph, const NestPlan& plan,
                      const language::Schedule& schedule, const CompileOptions& options);

}  // namespace kiln::schedule
