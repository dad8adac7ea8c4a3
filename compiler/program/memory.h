#pragma once

#include <cstdint>
#include <vector>

namespace kiln::program {

/// Memory that is needed from one kernel of a step to another, both included.
struct Block {
  int64_t bytes = 0;
  uint32_t first = 0;
  uint32_t last = 0;
};

struct MemoryPlan {
  std::vector<int64_t> offsets;  // by block, multiples of 64
  int64_t bytes = 0;
  int64_t live_bytes = 0;      // the most that is needed at a time
  int64_t separate_bytes = 0;  // without reuse
};

/// Places blocks so that no two that are needed at the same time overlap.
MemoryPlan plan_memory(const std::vector<Block>& blocks);

}  // namespace kiln::program
