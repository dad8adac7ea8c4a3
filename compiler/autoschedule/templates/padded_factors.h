#pragma once

#include <functional>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/language/kernel.h"
#include "compiler/language/tables/step.h"

namespace kiln::autoschedule {

/// Whether a sum of products would have tiles.
using HasTiles = std::function<bool(const StageGraph&, StageId)>;

/// Adds cache_padded for factors of products that are padded inside of the product, where that
/// makes a product of the sum that has tiles:
///
///   C[f, y] = sum[c, r](if_then_else(inside, X[c, y + r - 1], 0) * W[f, c, r])
///
/// Stages that have steps are left as they are.
language::Schedule with_padded_stages(const language::Kernel& kernel, language::Schedule given,
                                      const HasTiles& has_tiles);

/// On CPUs.
bool has_vector_tiles(const Chooser& chooser, StageId stage);

}  // namespace kiln::autoschedule
