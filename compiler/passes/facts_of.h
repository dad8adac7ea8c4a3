#pragma once

#include "compiler/analysis/prove.h"
#include "compiler/ir/kernel.h"

namespace kiln::passes {

/// What holds at every call: an extent of a parameter is not negative.
analysis::Facts facts_of_sizes(const ir::Kernel& kernel);

}  // namespace kiln::passes
