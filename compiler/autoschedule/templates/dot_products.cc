// How long a contraction takes as dot products, and whether a copy of its columns pays for that.
//
//   A[i, k] * B[k, j], 1000 x 784 x 10  ->  B transposed; 4 x 5 sums, each a vector along k
//
// Ten columns are ten lanes of a vector of sixteen, while along the reduction all lanes are full.
// Against that stand the copy and the horizontal reductions.
#include "compiler/autoschedule/templates/dot_products.h"

#include <algorithm>
#include <limits>

namespace kiln::autoschedule {
namespace {

constexpr int64_t kMostRows = 8;
constexpr int64_t kMostColumns = 10;

double one_tile(const ContractionSize& size, int64_t rows, int64_t columns, double fetch) {
  if (rows == 0 || columns == 0) return 0;
  const auto sums = static_cast<double>(rows * columns);
  const double busy = std::max(
      {sums / size.multiply_adds, size.latency, static_cast<double>(rows + columns) / size.loads});
  const double step = busy + size.dots.loop + fetch * static_cast<double>(columns);
  const int64_t steps = (size.steps + size.register_lanes - 1) / size.register_lanes;
  return static_cast<double>(steps) * step + size.tile_cycles + size.dots.sum * sums;
}

/// What rows that the caches do not hold add.
double stream_cycles(const ContractionSize& size, int64_t rows) {
  const int64_t elements = size.rows * size.steps;
  if (elements <= size.l2_elements) return 0;
  const double lines = static_cast<double>(elements) / static_cast<double>(size.register_lanes);
  return lines * size.dots.streamed / static_cast<double>(rows);
}

}  // namespace

double dot_cycles(const ContractionSize& size, const DotShape& tile) {
  const bool is_near = tile.columns * size.steps <= size.l1_elements * 3 / 4;
  const double fetch = is_near ? 0 : size.dots.far_vector;
  const int64_t full_columns = size.columns / tile.columns;
  const int64_t full_rows = size.rows / tile.rows;
  const auto across = [&](int64_t rows) {
    return static_cast<double>(full_columns) * one_tile(size, rows, tile.columns, fetch) +
           one_tile(size, rows, size.columns % tile.columns, fetch);
  };
  return static_cast<double>(full_rows) * across(tile.rows) + across(size.rows % tile.rows) +
         stream_cycles(size, tile.rows);
}

DotShape best_dots(const ContractionSize& size) {
  DotShape best;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t rows = 1; rows <= std::min(size.rows, kMostRows); ++rows) {
    for (int64_t columns = 1; columns <= std::min(size.columns, kMostColumns); ++columns) {
      const int64_t sums = rows * columns;
      // Beside the sums: a vector of each row, and one of a column.
      if (sums > size.most_sums || sums + rows + 1 > size.registers) break;
      const double cycles = dot_cycles(size, {rows, columns});
      if (cycles >= least) continue;
      least = cycles;
      best = {rows, columns};
    }
  }
  return best;
}

bool gains_by_dots(ContractionSize size) {
  // What is left beyond full vectors goes in shorter ones, which are fuller than tile_cycles says.
  const bool is_known = size.rows > 0 && size.columns > 0 && size.steps > 0;
  if (!is_known || size.columns >= size.register_lanes) return false;
  size.few_tasks = false;
  const double copy = static_cast<double>(size.columns) * static_cast<double>(size.steps);
  const TileShape outer = best_tile(size);
  return dot_cycles(size, best_dots(size)) + copy * size.dots.transposed <
         tile_cycles(size, outer) + stream_cycles(size, outer.rows);
}

}  // namespace kiln::autoschedule
