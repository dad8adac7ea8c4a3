#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/analysis/tile_product.h"

namespace kiln::analysis {

/// Rows of a tile, and bytes of each.
struct TileKind {
  int64_t rows = 0;
  int64_t bytes = 0;
  bool operator==(const TileKind&) const = default;
};

/// The tiles of a product of so many rows and columns, with so many groups of steps at once, and
/// fewer in the last step where `rest` is not 0.
struct TileShape {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t groups = 0;
  int64_t rest = 0;

  static TileShape of(int64_t rows, int64_t columns, int64_t all_groups);

  int64_t row_tiles() const { return tiles_along(rows); }
  int64_t column_tiles() const { return tiles_along(columns); }
  /// Whether one tile serves all rows, and one all columns: the last step has two of its own then.
  bool shares_factors() const { return rest > 0; }

  /// First those of the sums, row by row, then those of the rows, then those of the columns.
  std::vector<TileKind> kinds() const;
  /// Where among these a tile is.
  size_t sums(int64_t i, int64_t j) const { return index(i * column_tiles() + j); }
  size_t a(int64_t i, bool is_rest) const {
    const int64_t first = row_tiles() * column_tiles();
    return index(shares_factors() ? first + (is_rest ? 2 : 0) : first + i);
  }
  size_t b(int64_t j, bool is_rest) const {
    return shares_factors() ? a(0, is_rest) + 1 : a(row_tiles(), false) + index(j);
  }

 private:
  static size_t index(int64_t number) { return static_cast<size_t>(number); }
};

/// What the tiles of the unit are set to, all at once.
class TileSettings {
 public:
  /// Makes room for the tiles of one more product; false where there is none.
  bool add(const TileShape& shape);
  /// The tile for each of its kinds; nothing where the product needs others.
  std::optional<std::vector<int64_t>> numbers(const TileShape& shape) const;
  const std::vector<TileKind>& tiles() const { return tiles_; }

 private:
  std::vector<TileKind> tiles_;
};

}  // namespace kiln::analysis
