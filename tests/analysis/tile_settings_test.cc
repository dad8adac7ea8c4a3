#include "compiler/analysis/tile_settings.h"

#include <algorithm>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

using analysis::TileSettings;
using analysis::TileShape;

bool fit(const TileShape& first, const TileShape& second) {
  TileSettings settings;
  EXPECT_TRUE(settings.add(first));
  return settings.add(second);
}

TEST(TileSettings, ServeWhatIsLeftOverOfAnAxisWhereThereIsRoom) {
  const TileShape square = TileShape::of(32, 32, 64);
  EXPECT_TRUE(fit(square, TileShape::of(32, 16, 64)));
  EXPECT_TRUE(fit(square, TileShape::of(16, 32, 64)));
  EXPECT_FALSE(fit(square, TileShape::of(32, 8, 64)));
  EXPECT_FALSE(fit(square, TileShape::of(8, 32, 64)));
  EXPECT_TRUE(fit(TileShape::of(32, 16, 64), TileShape::of(32, 8, 64)));
  EXPECT_TRUE(fit(TileShape::of(16, 32, 64), TileShape::of(5, 32, 64)));
}

TEST(TileSettings, AreAsBeforeWhereThereIsNoRoom) {
  TileSettings settings;
  ASSERT_TRUE(settings.add(TileShape::of(32, 32, 64)));
  const std::vector<analysis::TileKind> before = settings.tiles();
  ASSERT_FALSE(settings.add(TileShape::of(8, 32, 64)));
  EXPECT_EQ(settings.tiles(), before);
  EXPECT_FALSE(settings.numbers(TileShape::of(8, 32, 64)));
}

// Of 75 groups there are five at once with fifteen, of 100 six with sixteen and one with four.
TEST(TileSettings, HaveATileOfItsKindForEachOfAProduct) {
  for (const int64_t groups : {1, 16, 75, 100}) {
    for (int64_t rows = 2; rows <= 48; ++rows) {
      for (const int64_t columns : {2, 7, 16, 17, 32, 48}) {
        if (!analysis::tiles_have_room(rows, columns, groups)) continue;
        const TileShape shape = TileShape::of(rows, columns, groups);
        TileSettings settings;
        ASSERT_TRUE(settings.add(shape));
        settings.add(TileShape::of(rows, std::min<int64_t>(columns, 5), groups));
        const auto numbers = settings.numbers(shape);
        ASSERT_TRUE(numbers);
        const std::vector<analysis::TileKind> kinds = shape.kinds();
        EXPECT_EQ(std::set(numbers->begin(), numbers->end()).size(), kinds.size());
        for (size_t i = 0; i < kinds.size(); ++i)
          EXPECT_EQ(settings.tiles().at(static_cast<size_t>((*numbers)[i])), kinds[i]);
        const bool has_rest = shape.shares_factors();
        EXPECT_EQ(shape.b(has_rest ? 0 : shape.column_tiles() - 1, has_rest), kinds.size() - 1);
      }
    }
  }
}

}  // namespace
}  // namespace kiln::testing
