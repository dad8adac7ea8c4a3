#pragma once

#include <cstdint>

#include "compiler/ir/kernel.h"

namespace kiln::passes {

/// Which last tiles are worth shifting inwards.
struct ShiftedTiles {
  int64_t least_parts = 64;    // what is computed twice is at most one of so many parts of all
  bool unrolled_alone = true;  // only those with a loop written out: of others two are little code
};

/// The pass of this name, for other tiles than it is for: tests have small ones.
ir::Kernel shift_last_tiles(ir::Kernel kernel, const ShiftedTiles& which);

}  // namespace kiln::passes
