#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/cpp/nodes.h"

namespace kiln {
inline namespace client {
namespace detail {

/// A reduction in the expressions of a compute: its value, the axes of the compute that it uses,
/// and those that it runs over.
struct InnerReduction {
  Expr value;
  std::vector<Axis> used;
  std::vector<Axis> reduced;
};

/// The first one that runs over the axis.
std::optional<InnerReduction> find_reduction(const StageNode& stage, const AxisNode* axis);

/// What its stage is called, after the name of its own stage: the reducer, of letters, digits and
/// _.
std::string word_for(const InnerReduction& reduction);

}  // namespace detail
}  // namespace client
}  // namespace kiln
