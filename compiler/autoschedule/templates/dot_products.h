#pragma once

#include <vector>

#include "compiler/autoschedule/templates/product_cost.h"

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

/// The shape that takes the fewest for what is no product, where a vector of a pair takes so many
/// cycles, and registers for what is computed of it.
DotShape best_pairs(const ContractionSize& size, double busy);

/// What all of them take in tiles of this shape.
double pair_cycles(const ContractionSize& size, const DotShape& tile, double busy);

/// Plans of a product of factors that both lie along the sum: a tile of columns stays while all
/// rows pass by, or one of rows while all columns do.
std::vector<ProductPlan> dots_plans(const Product& product, const PlanLimits& limits);

ProductCycles dots_cycles(const Product& product, const ProductPlan& plan, const Machine& machine);

/// Whether columns that do not fill their vectors are better transposed, and each sum a dot
/// product.
bool gains_by_dots(ContractionSize size);

}  // namespace kiln::autoschedule
