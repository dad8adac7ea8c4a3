// Blocks of code made of tiles as candidates of a search, and as a schedule names them.
#include "compiler/tile_block.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/autoschedule/choose/sketch_space.h"
#include "compiler/ir/print.h"
#include "compiler/lower.h"
#include "compiler/tile_ways.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

const Target kHopper{TargetKind::Cuda, "sm_90"};
const CompileOptions kUntouched{.untouched = true};

language::Kernel product(std::string_view extent) {
  return kernel_of(fmt::format("kernel f(A: float16[{0}, {0}], B: float16[{0}, {0}])"
                               " -> (C: float32[{0}, {0}]) {{"
                               " C[i, j] = sum[k < {0}](float32(A[i, k]) * float32(B[k, j])) }}",
                               extent))
      .kernel;
}

/// The one that is taken unmeasured is the first; each is one that a program can be made of.
TEST(TileBlocks, AreAFewOfWhichEachHasAProgram) {
  for (const char* extent : {"4096", "512", "n"}) {
    const language::Kernel kernel = product(extent);
    const std::vector<TileBlock> blocks = tile_blocks(kernel, kHopper, kUntouched);
    ASSERT_GE(blocks.size(), 4u) << extent;
    ASSERT_LE(blocks.size(), 8u) << extent;
    EXPECT_EQ(blocks[0], tile_ways(kernel, "sm_90")[0].tiled[0].block);
    for (const TileBlock& block : blocks) {
      EXPECT_EQ(std::ranges::count(blocks, block), 1);
      EXPECT_EQ(tile_ways(kernel, "sm_90", {.block = block})[0].tiled[0].block, block);
    }
  }
}

TEST(TileBlocks, AreNoneOfWhatIsNotMadeOfTiles) {
  EXPECT_TRUE(tile_blocks(product("512"), {TargetKind::Cuda, "sm_80"}, kUntouched).empty());
  EXPECT_TRUE(tile_blocks(product("512"), {TargetKind::Llvm, "znver4"}, kUntouched).empty());
  EXPECT_TRUE(tile_blocks(product("512"), kHopper, {}).empty());
  EXPECT_TRUE(tile_blocks(product("512"), kHopper, {.untouched = true, .strict = true}).empty());
}

/// Behind the steps of the CUDA C that is taken unmeasured, which older drivers run.
TEST(TileBlocks, AreSketchesWhosePragmasSayThem) {
  const language::Kernel kernel = product("4096");
  const std::vector<TileBlock> blocks = tile_blocks(kernel, kHopper, kUntouched);
  const SketchSpace space(kernel, {}, kHopper, kUntouched, blocks);
  const size_t without =
      SketchSpace(kernel, {}, kHopper, kUntouched).stages().back().sketches.size();
  ASSERT_EQ(space.stages().back().sketches.size(), without + blocks.size());
  const language::Schedule taken = choose_schedule(kernel, {}, kHopper, kUntouched);
  EXPECT_EQ(tile_block_of(taken), std::nullopt);
  for (size_t i = 0; i < blocks.size(); ++i) {
    autoschedule::Candidate candidate = space.preferred();
    candidate.stages.back() = {static_cast<uint32_t>(without + i), {}};
    const language::Schedule schedule = space.schedule(candidate);
    EXPECT_EQ(tile_block_of(schedule), blocks[i]);
    ASSERT_GT(schedule.steps.size(), taken.steps.size());
    for (size_t step = 0; step < taken.steps.size(); ++step)
      EXPECT_EQ(schedule.steps[step].kind, taken.steps[step].kind);
  }
}

/// They say nothing of loops: the CUDA C is that of the definition without them.
TEST(TileBlocks, LeaveTheirStagesToAutomaticSchedules) {
  for (const char* text :
       {"kernel f(A: float16[512, 512], B: float16[512, 512]) -> (C: float32[512, 512]) {"
        " C[i, j] = sum[k < 512](float32(A[i, k]) * float32(B[k, j])) }",
        "kernel f(A: float16[512, 511], B: float16[511, 512]) -> (C: float16[512, 512]) {"
        " P: float32[512, 512] P[i, j] = sum[k < 511](float32(A[i, k]) * float32(B[k, j]))"
        " C[i, j] = float16(max(P[i, j], 0)) }"}) {
    const language::Kernel kernel = kernel_of(text).kernel;
    const language::Schedule automatic = choose_schedule(kernel, {}, kHopper, kUntouched);
    const language::TargetSchedules given = language::parse_schedules(
        "schedule cuda { pragma(C.i, tile_rows, value=128)\npragma(C.j, tile_columns, value=64) }",
        "test.steps", kernel);
    const language::Schedule chosen = choose_schedule(kernel, given[0].second, kHopper, {});
    ASSERT_EQ(chosen.steps.size(), automatic.steps.size() + 2);
    LoweringObserver silent;
    const auto lowered = [&](const language::Schedule& schedule) {
      return ir::print(lower(kernel, schedule, kHopper, {}, Layout::Compact, silent));
    };
    EXPECT_EQ(lowered(chosen), lowered(automatic));
    EXPECT_EQ(tile_block_of(chosen), (TileBlock{.rows = 128, .columns = 64}));
  }
}

/// What it leaves out is as it is thought best.
TEST(TileBlocks, MayBeNamedInPart) {
  const language::Kernel kernel = product("4096");
  const TileBlock whole = tile_ways(kernel, "sm_90")[0].tiled[0].block;
  TileBlock other = whole;
  other.steps = 32;
  EXPECT_EQ(tile_ways(kernel, "sm_90", {.block = TileBlock{.steps = 32}})[0].tiled[0].block, other);
}

}  // namespace
}  // namespace kiln::testing
