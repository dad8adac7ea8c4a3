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

/// Which iterations of loops fulfil equations: the axes that follow from the others, the loops
/// that remain, and what must hold beside.
struct Solution {
  std::map<AxisId, ExprId> axes;   // each loop's axis: what follows, or the axis of `loops`
  std::vector<AxisId> loops;       // new axes of kind REDUCE
  std::vector<ExprId> conditions;  // bool, over the new axes and the values
};

/// Solves what a read says of the iterations that reach an element. Nothing where an index depends
/// on data or is no sum of axes: such reads are scattered.
///
///   X[2*i + r], i < n, r < 3, element x    i = (x - r)//2, for r in 0..3, where (x - r)%2 == 0
///                                          and 0 <= (x - r)//2 < n
std::optional<Solution> solve(Builder& builder, const std::vector<AxisId>& loops,
                              const std::vector<Equation>& equations);

}  // namespace kiln::autodiff
