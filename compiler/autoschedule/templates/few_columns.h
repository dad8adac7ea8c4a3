#pragma once

#include <optional>
#include <vector>

#include "compiler/autoschedule/recognise/chooser.h"

namespace kiln::autoschedule {

/// The order of a product's loops over data in which its rows are the last, where that is predicted
/// to be faster with the transposition of the result that it needs; nothing where it is not.
std::optional<std::vector<AxisId>> rows_last(const Chooser& chooser, StageId id);

}  // namespace kiln::autoschedule
