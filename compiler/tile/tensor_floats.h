#pragma once

#include <vector>

#include "compiler/tile/program.h"

namespace kiln::tile {

/// By ValueId, whether a tile of float32 is a factor of an mma in tf32, which reads of it what
/// tf32() leaves; reshaped before or not.
std::vector<bool> tensor_floats(const Program& program);

}  // namespace kiln::tile
