#pragma once

#include "compiler/tile/shared_factors.h"
#include "compiler/tile/thread_layout.h"

namespace kiln::tile {

/// What a thread does of a product of tiles: to its part of the sums, registers as own_place() has
/// them, are added the products of so many steps of two factors in shared memory.
struct ThreadProduct {
  ir::BufferRef sums;
  Shares shares;  // of the sums
  SharedFactor rows;
  SharedFactor columns;
  int64_t steps = 0;
};

/// By tensor cores, of 16-bit floats.
ir::Stmt by_matrices(const ThreadProduct& product);
/// By multiply-adds, of factors in float32.
ir::Stmt by_lanes(const ThreadProduct& product);

}  // namespace kiln::tile
