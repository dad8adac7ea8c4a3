#include "compiler/program/memory.h"

#include <gtest/gtest.h>

#include "tests/support/random.h"

namespace kiln::program {
namespace {

TEST(PlanMemory, GivesMemoryAgainOnceItsLastReaderHasRun) {
  const MemoryPlan plan = plan_memory({{64, 0, 1}, {64, 1, 2}, {64, 2, 3}});
  EXPECT_EQ(plan.offsets, (std::vector<int64_t>{0, 64, 0}));
  EXPECT_EQ(plan.bytes, 128);
  EXPECT_EQ(plan.live_bytes, 128);
  EXPECT_EQ(plan.separate_bytes, 192);
}

TEST(PlanMemory, FillsAGapBetweenTwoBlocks) {
  // The two large ones leave a gap when the one between them is gone.
  const MemoryPlan plan = plan_memory({{256, 0, 3}, {128, 0, 1}, {200, 0, 3}, {128, 2, 3}});
  EXPECT_EQ(plan.bytes, 256 + 256 + 128);
}

TEST(PlanMemory, AlignsEveryBlock) {
  for (const int64_t offset : plan_memory({{1, 0, 9}, {65, 0, 9}, {3, 0, 9}}).offsets)
    EXPECT_EQ(offset % 64, 0);
}

TEST(PlanMemory, NeverOverlapsWhatIsAliveTogether) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    testing::Random random(seed);
    std::vector<Block> blocks;
    const int count = static_cast<int>(random.between(1, 20));
    for (int i = 0; i < count; ++i) {
      const auto first = static_cast<uint32_t>(random.between(0, 10));
      blocks.push_back(
          {random.between(0, 1000), first, first + static_cast<uint32_t>(random.between(0, 4))});
    }
    const MemoryPlan plan = plan_memory(blocks);
    EXPECT_LE(plan.live_bytes, plan.bytes) << "seed " << seed;
    EXPECT_LE(plan.bytes, plan.separate_bytes) << "seed " << seed;
    for (size_t a = 0; a < blocks.size(); ++a) {
      for (size_t b = 0; b < a; ++b) {
        const bool together =
            blocks[a].first <= blocks[b].last && blocks[b].first <= blocks[a].last;
        const bool apart = plan.offsets[a] + blocks[a].bytes <= plan.offsets[b] ||
                           plan.offsets[b] + blocks[b].bytes <= plan.offsets[a];
        EXPECT_TRUE(apart || !together) << "seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace kiln::program
