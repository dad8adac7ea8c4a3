#pragma once

#include "compiler/autoschedule/templates/tile_cost.h"

namespace kiln::autoschedule {

/// Rows and columns whose sums are in registers, each a vector along the reduction, whose lanes are
/// added at its end.
struct DotShape {
  int64_t rows = 1;
  int64_t columns = 1;
};

/// About how many cycles a core takes for all sums in tiles of this shape, of columns that lie
/// along the reduction.
double dot_cycles(const ContractionSize& size, const DotShape& tile);

/// The shape that takes the fewest.
DotShape best_dots(const ContractionSize& size);

/// Whether columns that do not fill their vectors are better transposed, and each sum a dot
/// product.
bool gains_by_dots(ContractionSize size);

}  // namespace kiln::autoschedule
