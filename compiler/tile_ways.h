#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/language/kernel.h"
#include "compiler/target.h"
#include "compiler/tile/sequence.h"

namespace kiln {

/// A kernel on tiles, by how many warps a block of its last program is run, and what it is.
struct Tiled {
  tile::Sequence sequence;
  int warps = 0;
  std::string what;
  TileBlock block;
  int64_t most_spilled = 0;  // bytes of a thread that are no worse than CUDA C
};

/// A kernel on tiles for some calls: the blocks that are tried, the best first.
struct TileWay {
  std::vector<Tiled> tiled;

  const tile::Sequence& sequence() const { return tiled[0].sequence; }
};

/// The ways of a kernel for an architecture: of calls that two are for, the first is taken. With a
/// block among the options, this one alone is tried; with `fast` sums of 8-bit floats stay in the
/// few bits that tensor cores have. Throws Unsupported TILE_FORM with the reason where there is
/// none.
std::vector<TileWay> tile_ways(const language::Kernel& kernel, const std::string& arch,
                               const CompileOptions& options = {});

}  // namespace kiln
