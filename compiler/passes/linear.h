#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/expr.h"

namespace kiln::passes {

/// How much the expression grows when the variable grows by one, where that is a constant; 0 when
/// it does not use it. Nothing when the expression is not linear in the variable, or the factor is
/// no constant.
std::optional<int64_t> stride_of(const ir::Expr& expr, const ir::VarRef& var);

}  // namespace kiln::passes
