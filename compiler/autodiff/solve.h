#pragma once

#include <map>
#include <optional>
#include <vector>

#include "compiler/autodiff/builder.h"

namespace kiln::autodiff {

/// `index` (in axes of loops) must be `value` (which none of them changes).
struct Equation {
  ExprId index;
  ExprId value;
};

/// Where `value` has a remainder by `stride` that matters: of the remainders only the first `count`
/// are reached, and what is left to sum over is the same for all values that share one.
struct Phase {
  ExprId value;
  int64_t stride;
  int64_t count;
};

/// Which iterations of loops fulfil equations: the axes that follow from the others, the loops
/// that remain, and what must hold beside.
struct Solution {
  std::map<AxisId, ExprId> axes;   // each loop's axis: what follows, or the axis of `loops`
  std::vector<AxisId> loops;       // new axes of kind REDUCE
  std::vector<ExprId> conditions;  // bool, over the new axes and the values
  std::vector<Phase> phases;       // one at most for each equation
};

/// Solves what a read says of the iterations that reach an element. Nothing where an index depends
/// on data or is no sum of axes: such reads are scattered.
///
///   X[i + r], i < n, r < 3, element x      i = x - r, for r in 0..3, where 0 <= x - r < n
///   X[2*i + r], i < n, r < 3, element x    r = x%2 + 2*q and i = x//2 - q, for q in 0..2, where
///                                          r < 3 and 0 <= i < n
std::optional<Solution> solve(Builder& builder, const std::vector<AxisId>& loops,
                              const std::vector<Equation>& equations);

}  // namespace kiln::autodiff
