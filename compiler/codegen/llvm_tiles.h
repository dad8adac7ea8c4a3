#pragma once

#include <array>
#include <cstdint>

#include "compiler/analysis/tile_product.h"

namespace kiln::codegen {

/// What LDTILECFG reads: the palette, and of each tile the bytes of a row and how many rows.
using TileSettings = std::array<uint8_t, 64>;

/// The tiles of a product of so many rows and columns, with so many groups of steps at once, and
/// fewer in the last step where `rest` is not 0: first those of the sums, then those of the rows,
/// then those of the columns.
struct TileShape {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t groups = 0;
  int64_t rest = 0;

  static TileShape of(const analysis::TileProduct& product);

  bool operator==(const TileShape&) const = default;
  int64_t row_tiles() const { return analysis::tiles_along(rows); }
  int64_t column_tiles() const { return analysis::tiles_along(columns); }
  /// Whether one tile serves all rows, and one all columns: the last step has two of its own then.
  bool shares_factors() const { return rest > 0; }

  int64_t sums(int64_t i, int64_t j) const { return i * column_tiles() + j; }
  int64_t a(int64_t i, bool is_rest) const {
    const int64_t first = row_tiles() * column_tiles();
    return shares_factors() ? first + (is_rest ? 2 : 0) : first + i;
  }
  int64_t b(int64_t j, bool is_rest) const {
    return shares_factors() ? a(0, is_rest) + 1 : a(row_tiles(), false) + j;
  }
  TileSettings settings() const;
};

}  // namespace kiln::codegen
