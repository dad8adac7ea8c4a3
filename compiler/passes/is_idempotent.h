#pragma once

#include "compiler/ir/stmt.h"

namespace kiln::passes {

/// Whether a statement is idempotent: run once more, it stores the same. What it reads is not what
/// it stores, but for sums whose elements it stores before, and no data say where it stores. False:
/// not shown.
bool is_idempotent(const ir::Stmt& stmt);

}  // namespace kiln::passes
