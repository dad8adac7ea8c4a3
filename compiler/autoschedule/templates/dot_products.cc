// How long a contraction takes as dot products, and whether a copy of its columns pays for that.
//
//   A[i, k] * B[j, k], 16 x 4096 x 4096  ->  4 x 3 sums, each a vector along k; three rows of B for
//                                            all of A, then the next three
//   A[i, k] * B[k, j], 1000 x 784 x 10   ->  B transposed; 4 x 5 sums
//
// Ten columns are ten lanes of a vector of sixteen, while along the reduction all lanes are full.
// Against that stand the copy and the horizontal reductions.
#include "compiler/autoschedule/templates/dot_products.h"

#include <algorithm>
#include <limits>

#include "compiler/autoschedule/templates/tiled_product.h"

namespace kiln::autoschedule {
namespace {

constexpr int64_t kMostRows = 8;
constexpr int64_t kMostColumns = 10;
// Of factors as they are. Each row and column is a stream from a place of its own: 6 x 4096 x 1024
// takes a Zen 3 0.83 ms in tiles of 4 x 3, 0.95 in 2 x 5 and 1.09 in 6 x 2.
constexpr int64_t kMostRowsAlong = 4;
constexpr int64_t kMostColumnsAlong = 4;
constexpr int64_t kFarColumns = 3;
// Of what is no product: beside the sums, a row, and what is computed of it and of a column.
constexpr int64_t kMostPairRows = 6;
constexpr int64_t kMostPairColumns = 4;
constexpr int64_t kBesidePairs = 2;
// Of the registers, that such sums take: what is computed of a pair has to lie somewhere, too.
// 4 x 3 of squared differences are spilled with 16.
constexpr double kMostOfRegisters = 0.65;

/// What a step takes of a core for each sum, and for each vector that is loaded.
struct StepWork {
  double sum = 0;
  double vector = 0;
  double fetch = 0;  // of a vector of columns
  // Steps that follow each other in memory. What is left of them over full vectors is added one by
  // one, and lanes before that.
  int64_t stretch = 0;
};

double one_tile(const ContractionSize& size, int64_t rows, int64_t columns, const StepWork& work) {
  if (rows == 0 || columns == 0) return 0;
  const auto sums = static_cast<double>(rows * columns);
  const auto vectors = static_cast<double>(rows + columns);
  const double busy =
      std::max({work.sum * sums + work.vector * vectors, size.latency, vectors / size.loads});
  const double step = busy + size.dots.loop + work.fetch * static_cast<double>(columns);
  const int64_t lanes = size.register_lanes;
  const double ends = size.tile_cycles + size.dots.sum * sums;
  if (work.stretch >= size.steps || work.stretch % lanes == 0)
    return static_cast<double>(ceil_div(size.steps, lanes)) * step + ends;
  const int64_t stretches = size.steps / work.stretch;
  const int64_t full = work.stretch / lanes;
  const auto rest = static_cast<double>(work.stretch % lanes);
  return static_cast<double>(stretches) * (static_cast<double>(full) * step + rest * busy + ends);
}

double all_tiles(const ContractionSize& size, const DotShape& tile, const StepWork& work) {
  return sum_of_tiles(size, tile.rows, tile.columns, [&](int64_t rows, int64_t columns) {
    return one_tile(size, rows, columns, work);
  });
}

/// What rows that the caches do not hold add.
double stream_cycles(const ContractionSize& size, int64_t rows) {
  const int64_t elements = size.rows * size.steps;
  if (elements <= size.l2_elements) return 0;
  const double lines = static_cast<double>(elements) / static_cast<double>(size.register_lanes);
  return lines * size.dots.streamed / static_cast<double>(rows);
}

/// Integers are multiplied and added by two instructions, and what is narrower than a sum is
/// widened when it is loaded.
StepWork work_of(const Product& product, const Machine& machine) {
  return {.sum = product.adds_integers ? 2 / machine.operations : 1 / product.size.multiply_adds,
          .vector = product.is_narrow ? 1 / machine.operations : 0,
          .stretch = static_cast<int64_t>(product.row_stretches.back().extent)};
}

}  // namespace

double dot_cycles(const ContractionSize& size, const DotShape& tile) {
  const bool is_near = tile.columns * size.steps <= size.l1_elements * 3 / 4;
  const StepWork work{.sum = 1 / size.multiply_adds,
                      .fetch = is_near ? 0 : size.dots.far_vector,
                      .stretch = size.steps};
  return all_tiles(size, tile, work) + stream_cycles(size, tile.rows);
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

double pair_cycles(const ContractionSize& size, const DotShape& tile, double busy) {
  const StepWork work{.sum = busy, .stretch = size.steps};
  return static_cast<double>(ceil_div(size.rows, tile.rows) *
                             ceil_div(size.columns, tile.columns)) *
         one_tile(size, tile.rows, tile.columns, work);
}

DotShape best_pairs(const ContractionSize& size, double busy) {
  DotShape best;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t rows = 1; rows <= std::min(size.rows, kMostPairRows); ++rows) {
    for (int64_t columns = 1; columns <= std::min(size.columns, kMostPairColumns); ++columns) {
      const int64_t sums = rows * columns;
      if (static_cast<double>(sums) > kMostOfRegisters * static_cast<double>(size.registers) ||
          sums + columns + kBesidePairs > size.registers)
        break;
      const double cycles = pair_cycles(size, {rows, columns}, busy);
      if (cycles >= least) continue;
      least = cycles;
      best = {rows, columns};
    }
  }
  return best;
}

std::vector<ProductPlan> dots_plans(const Product& product, const PlanLimits& limits) {
  const ContractionSize& size = product.size;
  std::vector<ProductPlan> plans;
  const auto add = [&](const TileShape& tile) {
    ProductPlan plan{.panels = Panels::AlongSum, .tile = tile};
    plans.push_back(plan);
    plan.columns_first = true;
    if (tile.rows < size.rows) plans.push_back(plan);
  };
  if (limits.tile) {
    add(*limits.tile);
    return plans;
  }
  const int64_t most_rows = std::min(size.rows, kMostRowsAlong);
  const bool leaves_rows = size.rows % most_rows != 0;
  for (int64_t rows = leaves_rows ? most_rows - 1 : most_rows; rows <= most_rows; ++rows) {
    for (int64_t columns = 1; columns <= std::min(size.columns, kMostColumnsAlong); ++columns) {
      // Beside the sums: the vectors of the columns, one of a row, and a product of integers.
      const int64_t sums = rows * columns;
      const int64_t beside = columns + (product.adds_integers ? 2 : 1);
      if (sums > size.most_sums || sums + beside > size.registers) break;
      add({rows, columns});
    }
  }
  // Where columns come anew for each tile of rows, more of these at once.
  const bool are_far = size.columns * size.steps > size.l2_elements;
  if (are_far && size.registers >= kManyRegisters && size.rows > kMostRows)
    plans.push_back({.panels = Panels::AlongSum, .tile = {kMostRows, kFarColumns}});
  return plans;
}

ProductCycles dots_cycles(const Product& product, const ProductPlan& plan, const Machine& machine) {
  const TiledProduct tiled(product, plan);
  const Transfers transfers = fetches_of(tiled, machine);
  const bool shares_columns = plan.columns_first || tiled.row_tiles.count == 1;
  return {
      .core = tiled.batch * all_tiles(product.size, {plan.tile.rows, plan.tile.lanes},
                                      work_of(product, machine)) +
              transfers.waits(),
      .l2 = transfers.l2(),
      .l3 = transfers.l3(),
      .memory = transfers.memory(),
      .share = shares_columns
                   ? core_share(tiled.columns, tiled.tile_columns, tiled.batch, product.size.cores)
                   : core_share(tiled.rows, tiled.tile_rows, tiled.batch, product.size.cores)};
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
