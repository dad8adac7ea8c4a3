#pragma once

#include <optional>

#include "compiler/autoschedule/templates/split_sums.h"

namespace kiln::autoschedule {

/// Parts of the sum of a product in tiles, where these are fewer than keep all multiprocessors
/// busy: by what its tiles are predicted to take.
std::optional<SumSplit> split_of_product(const Chooser& chooser, StageId id);

}  // namespace kiln::autoschedule
