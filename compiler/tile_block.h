#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/language/kernel.h"
#include "compiler/language/tables/step.h"
#include "compiler/target.h"

namespace kiln {

/// What the pragmas of a schedule say of the blocks of code made of tiles; nothing where they say
/// nothing of them.
std::optional<TileBlock> tile_block_of(const language::Schedule& schedule);

/// The blocks that a search tries of a kernel, the one that is taken unmeasured in front, then
/// those that are predicted to take the least time; none where it is not made of tiles.
std::vector<TileBlock> tile_blocks(const language::Kernel& kernel, const Target& target,
                                   const CompileOptions& options);

}  // namespace kiln
