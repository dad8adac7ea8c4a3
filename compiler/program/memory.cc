// Offsets in one arena by lifetime: the largest block first, each at the lowest gap that is large
// enough between the blocks placed so far that live at the same time ("greedy by size", Pisarchyk
// and Lee, "Efficient memory management for deep neural net inference", 2020).
//
//   a: 0..1, b: 1..2, c: 2..3 of 64 bytes each   ->   a 0, b 64, c 0
#include "compiler/program/memory.h"

#include <algorithm>
#include <numeric>

namespace kiln::program {
namespace {

// A cache line, and the widest vector.
constexpr int64_t kAlignment = 64;

int64_t rounded(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

bool overlap(const Block& a, const Block& b) { return a.first <= b.last && b.first <= a.last; }

int64_t most_alive(const std::vector<Block>& blocks) {
  int64_t most = 0;
  for (const Block& at : blocks) {
    int64_t alive = 0;
    for (const Block& block : blocks) {
      if (block.first <= at.first && at.first <= block.last) alive += rounded(block.bytes);
    }
    most = std::max(most, alive);
  }
  return most;
}

}  // namespace

MemoryPlan plan_memory(const std::vector<Block>& blocks) {
  MemoryPlan plan;
  plan.offsets.assign(blocks.size(), 0);
  plan.live_bytes = most_alive(blocks);
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return blocks[a].bytes > blocks[b].bytes; });
  std::vector<size_t> placed;  // by offset
  for (const size_t id : order) {
    int64_t offset = 0;
    for (const size_t other : placed) {
      if (!overlap(blocks[id], blocks[other])) continue;
      if (plan.offsets[other] - offset >= rounded(blocks[id].bytes)) break;
      offset = std::max(offset, plan.offsets[other] + rounded(blocks[other].bytes));
    }
    plan.offsets[id] = offset;
    const auto place =
        std::upper_bound(placed.begin(), placed.end(), offset,
                         [&](int64_t at, size_t other) { return at < plan.offsets[other]; });
    placed.insert(place, id);
    plan.bytes = std::max(plan.bytes, offset + rounded(blocks[id].bytes));
    plan.separate_bytes += rounded(blocks[id].bytes);
  }
  return plan;
}

}  // namespace kiln::program
