#pragma once

#include "compiler/language/state/state_tables.h"

namespace kiln::language {

/// What a transform_layout says of the memory of its stage: memory of its own, each dimension once
/// for each of its factors, which are 1 and multiples of each other. Throws InvalidArgument.
void check_transform_layout(const Step& step, const StateTables& tables);

}  // namespace kiln::language
