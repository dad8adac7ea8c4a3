#pragma once

#include <cstdint>

#include "compiler/autoschedule/templates/gpu_machine.h"

namespace kiln::autoschedule {

/// Threads along each side of a block's tile.
constexpr int64_t kThreadsOfSide = 16;

/// What a thread does for an element of a factor that it fetches, and where that is computed what
/// for it is fetched.
struct FetchWork {
  double instructions = 0;   // beside loading and storing
  double multiply_adds = 0;  // of these
  double bytes = 0;          // loaded; 0: those of the factor
};

/// A contraction in numbers; extents that are not known are 0.
struct BlockProduct {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t steps = 0;  // of the whole reduction
  int64_t batch = 1;
  int64_t element_bytes = 4;  // of a factor
  FetchWork row_work = {};
  FetchWork column_work = {};
};

/// Rows and columns whose sums one thread has.
struct ThreadTile {
  int64_t rows = 4;
  int64_t columns = 4;
  bool operator==(const ThreadTile&) const = default;
};

/// About how many cycles a product takes on the machine, with blocks of 16 x 16 threads that have
/// so many steps of the reduction between two barriers.
double block_cycles(const BlockProduct& product, const ThreadTile& tile, int64_t steps_at_once,
                    const GpuMachine& machine);

}  // namespace kiln::autoschedule
