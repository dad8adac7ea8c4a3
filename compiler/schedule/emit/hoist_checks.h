#pragma once

#include <vector>

#include "compiler/ir/stmt.h"

namespace kiln::schedule {

/// The body of a loop without the checks that are the same in each iteration, and those checks.
struct HoistedChecks {
  std::vector<ir::Stmt> checks;
  ir::Stmt rest;
};

/// Takes out the checks in `body` that use neither `var` nor memory that the body writes, with
/// conditions around them. They hold or fail for all iterations alike, and a call whose check fails
/// leaves nothing of use behind, so one look before the loop will do.
HoistedChecks hoist_checks(const ir::Stmt& body, const ir::VarRef& var);

}  // namespace kiln::schedule
