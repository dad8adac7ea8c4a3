#pragma once

#include "compiler/tile/program.h"

namespace kiln::tile {

/// Throws Internal TILE_PROGRAM with what is wrong, unless every rule of the form holds: names and
/// values are there before they are used, types agree, tiles and axes cut a dimension the same way.
///
/// Then no element is stored by two blocks: an output is stored by one instruction, which names
/// every block axis of several parts, and tiles of a view at different places have no element in
/// common.
void verify(const Program& program);

}  // namespace kiln::tile
