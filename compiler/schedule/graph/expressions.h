#pragma once

#include <span>
#include <vector>

#include "compiler/schedule/graph/stage_graph.h"

namespace kiln::schedule {

/// The expressions of a definition as ir::Expr, by id. Axes are their value variables. `reducers`:
/// what the reducers are called in texts.
std::vector<ir::Expr> expressions_of(
    const language::Definition& definition, const std::vector<ir::VarRef>& sizes,
    const std::vector<ir::VarRef>& axis_values,
    std::span<const language::SourceMap::ReducerNames> reducers = {});

/// The reduction with its parts substituted, over other axes. With `from_identity` it starts there.
ir::Expr reduce_over(const ir::Reduce& reduce, const ir::Substitution& values,
                     std::vector<ir::VarRef> axes, bool from_identity = false);

}  // namespace kiln::schedule
