#pragma once

#include "compiler/analysis/prove.h"

namespace kiln::analysis {

/// Below `end`, a condition holds; `exact`: and from `end` on it does not.
struct Prefix {
  ir::Expr end;
  bool exact = false;
};

/// Where a comparison that is linear in `var` holds, for all values of the `inner` variables.
/// Nothing when it is not linear, begins to hold rather than to fail as `var` grows, or reads
/// memory.
std::optional<Prefix> holds_below(const ir::Expr& condition, const ir::VarRef& var,
                                  const std::vector<Facts::Range>& inner, const Facts& facts);

}  // namespace kiln::analysis
