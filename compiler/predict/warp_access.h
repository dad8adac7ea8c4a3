#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "compiler/predict/nest.h"

namespace kiln::predict {

/// What comes from L2 for a byte of it.
constexpr int64_t kSectorBytes = 32;

/// Loops over threadIdx.x, .y and .z around an access: which of the loops around it each is, and
/// how many threads it has.
struct ThreadLoop {
  size_t depth = SIZE_MAX;
  int64_t extent = 1;
};
using ThreadLoops = std::array<ThreadLoop, 3>;

/// What one access of a warp's threads takes.
struct WarpAccess {
  int64_t wavefronts = 0;  // of shared memory: cycles, in each of which a bank gives one word
  int64_t fewest = 0;      // the same without words that meet in a bank
  int64_t sectors = 0;     // of memory: 32 bytes each, that the threads touch
};

/// Of the first warp of a block, thread by thread. An access of several elements moves them at
/// once: of 8 bytes for half of the threads at a time, of 16 for a quarter.
WarpAccess warp_access(const Touch& touch, const ThreadLoops& threads);

/// Of so many bytes each at these places of shared memory, in bytes, which an instruction loads at
/// once: rows of a matrix, or words of lanes.
WarpAccess matrix_access(std::span<const int64_t> places, int64_t bytes);

}  // namespace kiln::predict
