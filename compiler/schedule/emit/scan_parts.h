#pragma once

#include "compiler/ir/stmt.h"
#include "runtime/core/target_kind.h"

namespace kiln::schedule {

/// The loops of a running scan (running_scan()) in parts of `steps` steps that run at once: on a
/// GPU in threads of their own, on a CPU on several cores.
///
/// `scan` has one loop over `time` inside of those over columns that all of the scan share, its
/// initial step before that.
ir::Stmt in_parts(const ir::Stmt& scan, const ir::VarRef& time, int64_t steps, TargetKind target);

}  // namespace kiln::schedule
