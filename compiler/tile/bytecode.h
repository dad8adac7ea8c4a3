#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "compiler/tile/sequence.h"

namespace kiln::tile {

struct BytecodeOptions {
  std::string_view arch = "sm_90";  // what the hint is for; the code is for all
  int warps = 0;                    // that work for a block; 0: what the assembler thinks best
  size_t number = 0;                // of its first entry
  std::optional<size_t> step = {};  // the program that is written alone; nothing: all are
};

/// The entry of a program, by how many are before it in its kernel: "kiln_tile_0".
std::string entry_name(size_t number);

/// A verified sequence as bytecode of CUDA Tile IR 13.1, the first version, which every assembler
/// and driver that knows Tile IR reads, or, with fast products, of 13.3, the first that has them: a
/// module with an entry for each program. An entry takes a
/// pointer for each tensor of the kernel, at a multiple of 16 bytes, then each size as an int64;
/// where programs leave tensors for later ones also the strides of the kernel's tensors, which it
/// does not read, and a pointer to workspace_bytes(). It is launched with block_count() blocks of
/// its program along x. Parts of an axis are counted in 32 bits.
///
/// The format is specified in docs.nvidia.com/cuda/tile-ir; this writes only what programs hold.
std::string bytecode(const Sequence& sequence, const BytecodeOptions& options = {});

}  // namespace kiln::tile
