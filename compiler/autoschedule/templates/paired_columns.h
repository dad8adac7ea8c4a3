#pragma once

#include <optional>

#include "compiler/autoschedule/templates/pairs.h"

namespace kiln::autoschedule {

/// In tiles of rows by vectors of columns, which are copied beside each other where they lie along
/// the sum, or gathered where both are of one tensor. Each result adds up in the order of the
/// definition.
std::optional<PairSketch> paired_columns_sketch(const Chooser& chooser, StageId stage,
                                                const Pairs& pairs, bool may_be_parallel);

}  // namespace kiln::autoschedule
