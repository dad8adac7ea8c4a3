#pragma once

#include "compiler/ir/expr.h"

namespace kiln::passes {

/// The expression with `lanes` lanes: a scalar is broadcast.
ir::Expr widened(const ir::Expr& expr, int lanes);

/// `a op b` where either may be a vector and the other a scalar. Index arithmetic stays a Ramp, or
/// a scalar, as long as it can: that is what makes an access contiguous.
ir::Expr vector_binary(ir::Operator op, const ir::Expr& a, const ir::Expr& b);

/// Whether any lane of a vector of bools holds. The guard of a split, `ramp < bound`, holds for the
/// first lane when it holds for one, and is then asked there.
ir::Expr any_lane(const ir::Expr& mask);

}  // namespace kiln::passes
