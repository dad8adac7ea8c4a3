#pragma once

#include <string>

#include "compiler/ir/launch.h"

namespace kiln::codegen {

/// Whether code has two iterations of a loop written out, since two memories take turns in it.
bool is_written_twice(const ir::For& loop);

/// "__launch_bounds__(256, 2) ". `has_matrices`: a thread holds sums of matrices.
std::string launch_bounds_of(const ir::LaunchNest& nest, bool has_matrices);

}  // namespace kiln::codegen
