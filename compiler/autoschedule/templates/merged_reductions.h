#pragma once

#include "compiler/autoschedule/templates/open_schedule.h"

namespace kiln::autoschedule {

/// `given` with a step for each open reduction, but products, whose last axes go on into each
/// other: they are one axis.
OpenSchedule with_merged_reductions(const language::Kernel& kernel, OpenSchedule given);

}  // namespace kiln::autoschedule
