#pragma once

#include <vector>

#include "compiler/autoschedule/templates/contraction_numbers.h"
#include "compiler/autoschedule/templates/product_cost.h"
#include "compiler/autoschedule/templates/sketch.h"

namespace kiln::autoschedule {

/// Whether what cores share of a product takes longer than waking them.
bool is_worth_sharing(const Tiling& tiling, const CheapestPlan& way, const Machine& machine);

/// For a CPU with a matrix unit: products of bytes or of bfloat16 whose tiles it adds as a whole.
/// `product`: the same in tiles of vectors; `may_copy_all`: all panels may be copied before it.
///
/// Sketches of panels, the first of which is taken unmeasured.
std::vector<Sketch> unit_tile_sketches(const Chooser& chooser, const Tiling& tiling,
                                       const Numbers& numbers, Product product, bool may_copy_all,
                                       bool parallel);

}  // namespace kiln::autoschedule
