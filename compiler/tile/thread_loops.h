#pragma once

#include "compiler/ir/kernel.h"
#include "compiler/tile/program.h"

namespace kiln::tile {

/// A program on tiles as loops of the threads of its blocks, as build_loops leaves those of a
/// schedule: passes and CUDA C do the rest. Loops of one axis, sums along rows and products whose
/// left factor is loaded or computed; throws Unsupported TILE_FORM for what else a program may say.
/// `warps` is how many threads a block has, a power of two; products of 16-bit floats are those of
/// tensor cores where `has_matrices`.
ir::Kernel thread_loops(const Program& program, int64_t warps, bool has_matrices);

}  // namespace kiln::tile
