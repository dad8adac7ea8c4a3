#pragma once

#include <string_view>

#include "compiler/ir/kernel.h"

namespace kiln::ir {

/// Parses what print(Kernel) writes. Throws InvalidArgument SYNTAX with line and column.
Kernel parse(std::string_view text);

}  // namespace kiln::ir
