#pragma once

#include <vector>

#include "compiler/language/state/state_tables.h"

namespace kiln::language {

/// What a step reduction_stage says of axes and names, as far as the table of axes knows: the axes
/// of its stage that the reduction uses, then those that it reduces over. Returns the latter.
/// Throws InvalidArgument REDUCTION_STAGE. Whether the expression has such a reduction is found
/// when the step is taken.
std::vector<AxisId> check_reduction_stage(const Step& step, const StateTables& tables);

}  // namespace kiln::language
