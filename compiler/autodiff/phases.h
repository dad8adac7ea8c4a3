#pragma once

#include <map>
#include <optional>
#include <vector>

#include "compiler/autodiff/solve.h"

namespace kiln::autodiff {

/// The axes of a stage with those apart, into quotient and remainder, of which the remainder says
/// which iterations reach an element.
struct InPhases {
  std::vector<AxisId> axes;        // remainders, then the axes as they were or their quotients
  std::map<AxisId, ExprId> old;    // each axis that was there, in these
  std::vector<ExprId> at;          // one for each of `axes`, in those that were there
  std::vector<ExprId> conditions;  // where `at` is an element; elsewhere nothing adds up
};

/// Nothing where no phase is that of an axis alone.
///
///   a < 9, phases of a + 1 by 2    p < 2, q < 5, a = 2*q + p - 1, at [(a + 1)%2, (a + 1)//2]
std::optional<InPhases> in_phases(Builder& builder, const std::vector<AxisId>& axes,
                                  const std::vector<Phase>& phases);

}  // namespace kiln::autodiff
