#pragma once

#include "compiler/analysis/prove.h"

namespace kiln::analysis {

/// From `begin` (null: the start) to before `end` (null: the end), a condition holds; `exact`: and
/// outside it does not.
struct Span {
  ir::Expr begin;
  ir::Expr end;
  bool exact = false;
};

/// Where a comparison that is linear in `var` holds, for all values of the `inner` variables; one
/// of the two ends is null. Nothing when it is not linear, does not depend on `var`, or reads
/// memory.
std::optional<Span> holds_where(const ir::Expr& condition, const ir::VarRef& var,
                                const std::vector<Facts::Range>& inner, const Facts& facts);

}  // namespace kiln::analysis
