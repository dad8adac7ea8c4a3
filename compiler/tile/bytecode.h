#pragma once

#include <string>
#include <string_view>

#include "compiler/tile/program.h"

namespace kiln::tile {

struct BytecodeOptions {
  std::string_view arch = "sm_90";  // what the hint is for; the code is for all
  int warps = 0;                    // that work for a block; 0: what the assembler thinks best
};

/// A verified program as bytecode of CUDA Tile IR 13.1, the first version, which every assembler
/// and driver that knows Tile IR reads: a module of one entry. It takes a pointer for each
/// parameter, at a multiple of 16 bytes, then each size as an int64, and is launched with
/// block_count() blocks along x. Parts of an axis are counted in 32 bits.
///
/// The format is specified in docs.nvidia.com/cuda/tile-ir; this writes only what programs hold.
std::string bytecode(const Program& program, std::string_view entry,
                     const BytecodeOptions& options = {});

}  // namespace kiln::tile
