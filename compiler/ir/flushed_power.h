#pragma once

#include "compiler/ir/expr.h"

namespace kiln::ir {

/// 2^exponent in float32, 0 where that would be subnormal; what a GPU has in one instruction.
///
///   select(x < -126.0, 0.0, exp2(x))
Expr flushed_power(const Expr& exponent);

/// The exponent of an expression that is one; nothing where it is another expression.
Expr find_flushed_power(const Call& call);

}  // namespace kiln::ir
