#pragma once

#include "compiler/ir/expr.h"

namespace kiln::passes {

/// The `count` neighbours in memory that the loop over `k` reads from its start on, at once: a ramp
/// along the last dimension, or lanes of each that the loop goes through.
ir::Expr row_along(const ir::Load& load, const ir::VarRef& k, int count);

}  // namespace kiln::passes
