#pragma once

#include <optional>
#include <span>

#include "compiler/autoschedule/recognise/chooser.h"

namespace kiln::autoschedule {

/// What all elements of a stage take one core, in cycles, with the reductions inside of its
/// expressions; nothing where a size is not known. Of a stage in a cell of a scan: so many steps.
std::optional<double> stage_cycles(const Chooser& chooser, StageId stage, int64_t steps = 1);

/// Whether stages that share their loops are worth waking other cores: what they take is long
/// enough, or nobody knows.
bool is_worth_sharing(const Chooser& chooser, std::span<const StageId> stages);
bool is_worth_sharing(const Chooser& chooser, StageId stage);

}  // namespace kiln::autoschedule
