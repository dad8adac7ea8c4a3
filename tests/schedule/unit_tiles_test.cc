#include "compiler/autoschedule/templates/unit_tiles.h"

#include <gtest/gtest.h>

#include "compiler/analysis/tile_product.h"
#include "compiler/autoschedule/choose/sketch_space.h"
#include "tests/support/kernels.h"

namespace kiln::autoschedule {
namespace {

std::pair<int64_t, int64_t> best(int64_t rows, int64_t columns, const UnitSteps& steps) {
  const TileShape tile = best_unit_tiles(rows, columns, steps).front();
  return {tile.rows, tile.lanes};
}

TEST(UnitTiles, UseEachTileOfAFactorTwice) {
  EXPECT_EQ(best(1024, 1024, {.groups = 256}), std::pair(32L, 32L));
  EXPECT_EQ(best(64, 64, {.groups = 16}), std::pair(32L, 32L));
}

TEST(UnitTiles, TakeAllRowsWhereTheyAreFew) {
  EXPECT_EQ(best(8, 1024, {.groups = 256}).first, 8);
  EXPECT_EQ(best(512, 7, {.groups = 128, .times = 9}).second, 7);
}

// Tiles of 16 and of less rows have none for steps that are left over.
TEST(UnitTiles, HaveRoomForStepsThatAreLeftOver) {
  for (int64_t rows = 2; rows < 80; ++rows) {
    for (const int64_t columns : {5, 16, 33, 48, 49, 100}) {
      for (const UnitSteps& steps : {UnitSteps{101, 1}, UnitSteps{18, 9}, UnitSteps{16, 9}}) {
        for (const TileShape& tile : best_unit_tiles(rows, columns, steps))
          EXPECT_TRUE(analysis::tiles_have_room(tile.rows, tile.lanes, steps.groups))
              << rows << " x " << columns << ", " << steps.groups << " groups";
      }
    }
  }
}

// Of 48 steps a product is a step of tiles: to set them for eight columns takes longer than twice
// as many tiles.
TEST(UnitTiles, AreSuchThatWhatIsLeftOverHasRoom) {
  const UnitSteps steps{.groups = 12};
  EXPECT_EQ(best(2848, 112, steps), std::pair(32L, 32L));
  const TileShape tile = best_unit_tiles(2848, 104, steps).front();
  EXPECT_FALSE(other_settings(2848, 104, tile, steps).columns);
  EXPECT_TRUE(other_settings(2848, 104, {32, 32}, steps).columns);
  EXPECT_FALSE(other_settings(2848, 104, {32, 32}, steps).rows);
  EXPECT_TRUE(other_settings(2840, 104, {32, 32}, steps).rows);
}

// 1597 bytes are 399 groups of four and one step for vectors: 400 groups would be whole tiles, of
// which there is room for 30 rows.
TEST(UnitTiles, AreChosenByWholeGroups) {
  const language::TextKernel product = testing::kernel_of(
      "kernel k(A: int8[114, 1597], B: int8[1597, 39]) -> (C: int32[114, 39]) {"
      " C[i, j] = sum[k < 1597](int32(A[i, k]) * int32(B[k, j])) }");
  const Target target{TargetKind::Llvm, "sapphirerapids"};
  const SketchSpace space(product.kernel, {}, target, {});
  for (const Sketch& sketch : space.stages().at(0).sketches) {
    const std::vector<int64_t> values = sketch.preferred();
    const Values by_name(sketch.parameters, values);
    EXPECT_TRUE(analysis::tiles_have_room(by_name.get("rows", 0), by_name.get("lanes", 0), 399))
        << sketch.name;
  }
}

}  // namespace
}  // namespace kiln::autoschedule
