#pragma once

#include <optional>

#include "compiler/autoschedule/templates/split_sums.h"

namespace kiln::autoschedule {

/// Parts of long rows of which there are few, as of a whole tensor: as many as give all
/// multiprocessors of the GPU something to do.
std::optional<SumSplit> split_of_rows(const Chooser& chooser, StageId id);

}  // namespace kiln::autoschedule
