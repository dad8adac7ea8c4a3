#pragma once

#include <cstdint>
#include <vector>

#include "compiler/autoschedule/templates/tile_cost.h"

namespace kiln::autoschedule {

/// The steps of a product on a matrix unit: groups along the innermost loop, and how often that
/// runs; and what they take beside.
struct UnitSteps {
  int64_t groups = 1;
  int64_t times = 1;
  UnitCycles cycles = {};
};

/// Cycles that a core takes for a product in tiles of this shape, what is left over included, but
/// not that tiles are set for it.
double unit_product_cycles(int64_t rows, int64_t columns, const TileShape& tile,
                           const UnitSteps& steps);

/// Whether what is left over at the end of an axis has no tiles beside those of whole ones, so that
/// they are set for it, and back, which takes `cycles.setting`.
struct OtherSettings {
  bool rows = false;
  bool columns = false;
};
OtherSettings other_settings(int64_t rows, int64_t columns, const TileShape& tile,
                             const UnitSteps& steps);

/// Shapes with which a product takes the matrix unit the fewest cycles, the fewest first.
std::vector<TileShape> best_unit_tiles(int64_t rows, int64_t columns, const UnitSteps& steps);

}  // namespace kiln::autoschedule
