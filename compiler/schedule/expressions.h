#pragma once

#include <vector>

#include "compiler/schedule/stage_graph.h"

namespace kiln::schedule {

/// The expressions of a definition as ir::Expr, by id. Axes are their value variables.
std::vector<ir::Expr> expressions_of(const language::Definition& definition,
                                     const std::vector<ir::VarRef>& sizes,
                                     const std::vector<ir::VarRef>& axis_values);

}  // namespace kiln::schedule
