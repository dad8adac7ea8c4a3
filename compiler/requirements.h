#pragma once

#include <vector>

#include "compiler/ir/kernel.h"
#include "compiler/language/definition.h"
#include "runtime/core/artifact.h"

namespace kiln {

/// What a call's sizes must satisfy for the definition to make sense: each scan that an output
/// needs has room for its initial steps. `sizes` are the variables of the kernel.
std::vector<SizeRequirement> size_requirements(const language::Definition& definition,
                                               const std::vector<ir::VarRef>& sizes);

}  // namespace kiln
