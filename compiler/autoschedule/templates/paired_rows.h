#pragma once

#include <optional>

#include "compiler/autoschedule/templates/pairs.h"

namespace kiln::autoschedule {

/// In tiles of both, in vectors along the sum, which may be reassociated. Nothing for short rows.
std::optional<PairSketch> paired_rows_sketch(const Chooser& chooser, StageId stage,
                                             const Pairs& pairs, bool may_be_parallel);

}  // namespace kiln::autoschedule
