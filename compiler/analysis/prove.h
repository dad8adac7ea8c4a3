#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/stmt.h"

namespace kiln::analysis {

/// What is known about variables while a tree is walked: ranges of loop variables, conditions of
/// the branches taken. Loops and conditions nest: push on the way in, pop on the way out.
class Facts {
 public:
  /// lower <= var; var < upper (either may be null). The bounds may use variables known before.
  void push_range(const ir::VarRef& var, ir::Expr lower, ir::Expr upper);
  /// `condition` holds.
  void push_condition(ir::Expr condition);
  void pop();

  struct Range {
    ir::VarRef var;
    ir::Expr lower;
    ir::Expr upper;
  };
  struct Entry {
    std::optional<Range> range;
    ir::Expr condition;
  };
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

/// Whether the condition holds for all values the facts allow. False: not proved, it may hold or
/// not.
bool can_prove(const ir::Expr& condition, const Facts& facts);

/// Simplest equal expression this can find; folds constants, cancels terms, uses the facts.
ir::Expr simplify(const ir::Expr& expr, const Facts& facts = {});

/// Bounds of an int64 expression while `inner` variables run over their ranges and all others stand
/// still; null where none is found. Bounds may use the other variables.
struct Interval {
  ir::Expr min;  // inclusive
  ir::Expr max;  // inclusive
};
Interval bounds_of(const ir::Expr& expr, const std::vector<Facts::Range>& inner,
                   const Facts& facts);

}  // namespace kiln::analysis
