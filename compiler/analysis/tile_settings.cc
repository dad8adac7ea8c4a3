// Which tiles of a matrix unit products take, and whether several products get along with the same
// settings: what is left over of the columns, and of the rows, is a product of its own.
//
//   32 x 16 sums of 64 groups, and 32 x 8  ->  sums 0 1, A 2 3, B 4; sums 5 6, B 7
//   32 x 32, and 32 x 16                   ->  the second takes tiles of the first
//   32 x 32, and 32 x 8                    ->  no room for both
#include "compiler/analysis/tile_settings.h"

#include <algorithm>

namespace kiln::analysis {
namespace {

constexpr int64_t kGroupBytes = 4;

/// How many of all tiles along an axis the one with this index has.
int64_t part(int64_t all, int64_t index) { return std::min(kTileRows, all - index * kTileRows); }

}  // namespace

TileShape TileShape::of(int64_t rows, int64_t columns, int64_t all_groups) {
  const int64_t each = groups_at_once(all_groups);
  return {rows, columns, each, all_groups % each};
}

std::vector<TileKind> TileShape::kinds() const {
  std::vector<TileKind> kinds;
  for (int64_t i = 0; i < row_tiles(); ++i) {
    for (int64_t j = 0; j < column_tiles(); ++j)
      kinds.push_back({part(rows, i), part(columns, j) * kGroupBytes});
  }
  const auto factors = [&](int64_t row_count, int64_t column_count, int64_t depth) {
    for (int64_t i = 0; i < row_count; ++i)
      kinds.push_back({part(rows, i), depth * kGroupBytes});
    for (int64_t j = 0; j < column_count; ++j)
      kinds.push_back({depth, part(columns, j) * kGroupBytes});
  };
  if (!shares_factors()) {
    factors(row_tiles(), column_tiles(), groups);
  } else {
    factors(1, 1, groups);
    factors(1, 1, rest);
  }
  return kinds;
}

bool TileSettings::add(const TileShape& shape) {
  const std::vector<TileKind> needed = shape.kinds();
  std::vector<TileKind> tiles = tiles_;
  for (const TileKind& kind : needed) {
    if (std::ranges::count(tiles, kind) < std::ranges::count(needed, kind)) tiles.push_back(kind);
  }
  if (static_cast<int64_t>(tiles.size()) > kTiles) return false;
  tiles_ = std::move(tiles);
  return true;
}

std::optional<std::vector<int64_t>> TileSettings::numbers(const TileShape& shape) const {
  std::vector<int64_t> numbers;
  std::vector<bool> taken(tiles_.size());
  for (const TileKind& kind : shape.kinds()) {
    size_t tile = 0;
    while (tile < tiles_.size() && (taken[tile] || tiles_[tile] != kind))
      ++tile;
    if (tile == tiles_.size()) return std::nullopt;
    taken[tile] = true;
    numbers.push_back(static_cast<int64_t>(tile));
  }
  return numbers;
}

}  // namespace kiln::analysis
