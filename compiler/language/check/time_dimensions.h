#pragma once

#include <vector>

#include "compiler/language/definition.h"

namespace kiln::language {

/// For each stage in the cell of a scan the dimension that is time, else -1. That of states and
/// updates is the scan's; that of another stage is the one whose axis says at which step it reads
/// a state, or a stage of the cell before it. Where no axis does, it is the scan's if there is one.
std::vector<int> time_dimensions(const Definition& definition);

}  // namespace kiln::language
