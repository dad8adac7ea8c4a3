#include "compiler/autoschedule/templates/unit_tiles.h"

#include <gtest/gtest.h>

#include "compiler/analysis/tile_product.h"

namespace kiln::autoschedule {
namespace {

std::pair<int64_t, int64_t> best(int64_t rows, int64_t columns, const UnitSteps& steps) {
  const TileShape tile = best_unit_tile(rows, columns, steps);
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
        const TileShape tile = best_unit_tile(rows, columns, steps);
        EXPECT_TRUE(analysis::tiles_have_room(tile.rows, tile.lanes, steps.groups))
            << rows << " x " << columns << ", " << steps.groups << " groups";
      }
    }
  }
}

}  // namespace
}  // namespace kiln::autoschedule
