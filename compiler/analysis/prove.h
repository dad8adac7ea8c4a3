#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "compiler/ir/stmt.h"

namespace kiln::analysis {

class Knowledge;

/// What is known about variables while a tree is walked: ranges of loop variables, conditions of
/// the branches taken. Loops and conditions nest: push on the way in, pop on the way out.
///
/// Of one thread at a time, even when const: what follows from the facts is kept with them.
class Facts {
 public:
  Facts();
  Facts(const Facts& other);
  Facts& operator=(const Facts& other);
  Facts(Facts&&) noexcept;
  Facts& operator=(Facts&&) noexcept;
  ~Facts();

  /// lower <= var; var < upper (either may be null). The bounds may use variables known before.
  void push_range(const ir::VarRef& var, ir::Expr lower, ir::Expr upper);
  /// `condition` holds. What it reads from memory must not be stored to before pop().
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

  /// The entries in the form the analysis computes with, up to date.
  Knowledge& knowledge() const;

 private:
  std::vector<Entry> entries_;
  mutable std::unique_ptr<Knowledge> knowledge_;
};

/// Whether the condition holds for all values the facts allow. False: not proved, it may hold or
/// not.
///
/// Index arithmetic is taken not to overflow; dividing by zero gives zero. The work is bounded, and
/// running out of it is "not proved".
bool can_prove(const ir::Expr& condition, const Facts& facts);

/// Simplest equal expression this can find; folds constants, cancels terms, uses the facts. Gives
/// the same node back when there is nothing to do. Floats are never reassociated or folded.
ir::Expr simplify(const ir::Expr& expr, const Facts& facts = {});

/// floordiv(i*32 + j, 96) as floordiv(i, 3), and floormod(i*32 + j, 96) as floormod(i, 3)*32 + j,
/// where 0 <= j < 32; null where a division by a number has no such form.
ir::Expr coarser_division(const ir::Binary& division, const Facts& facts);

/// Bounds of an int64 expression while `inner` variables run over their ranges and all others stand
/// still; null where none is found. Bounds may use the other variables. `inner` stands outermost
/// first: the range of one may use those before it. A range without values has no meaningful
/// bounds.
struct Interval {
  ir::Expr min;  // inclusive
  ir::Expr max;  // inclusive
};
Interval bounds_of(const ir::Expr& expr, const std::vector<Facts::Range>& inner,
                   const Facts& facts);

}  // namespace kiln::analysis
