#pragma once

#include <vector>

#include "compiler/autoschedule/templates/contraction_numbers.h"
#include "compiler/autoschedule/templates/sketch.h"

namespace kiln::autoschedule {

/// For a CPU with a matrix unit: products of bytes or of bfloat16 whose tiles it adds as a whole.
/// `may_copy_all`: all panels may be copied before the product.
///
/// Sketches of panels, the first of which is taken unmeasured.
std::vector<Sketch> unit_tile_sketches(const Chooser& chooser, const Tiling& tiling,
                                       const Numbers& numbers, bool may_copy_all, bool parallel);

/// The steps of a product: groups along the innermost loop, and how often that runs.
struct UnitSteps {
  int64_t groups = 1;
  int64_t times = 1;
};

/// Rows and columns of a tile of sums with which a product takes the matrix unit the fewest cycles.
TileShape best_unit_tile(int64_t rows, int64_t columns, const UnitSteps& steps);

}  // namespace kiln::autoschedule
