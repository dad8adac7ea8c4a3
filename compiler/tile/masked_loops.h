#pragma once

#include <map>
#include <optional>

#include "compiler/tile/program.h"

namespace kiln::tile {

/// What the second of two loops masks, by what it is without masks.
using Masks = std::map<ValueId, ValueId>;

/// Of two loops one behind the other: that the second goes on where the first one ends, along the
/// same dimension, and computes the same but that it chooses a constant for some elements of what
/// the first one takes as it is. So one loop does what both do, which masks from there on. Nothing
/// where that is not so.
std::optional<Masks> masks_of_second(const Program& program, const Instruction& first,
                                     const Instruction& second);

}  // namespace kiln::tile
