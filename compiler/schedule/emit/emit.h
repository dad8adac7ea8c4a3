#pragma once

#include "compiler/ir/kernel.h"
#include "compiler/schedule/bounds/nest.h"
#include "compiler/target.h"

namespace kiln::schedule {

/// All loops of a kernel, from the nests. Rows of run-time checks are added to `checks`.
ir::Stmt emit_loops(const StageGraph& graph, const NestPlan& plan, TargetKind target,
                    std::vector<RuntimeCheck>& checks);

}  // namespace kiln::schedule
