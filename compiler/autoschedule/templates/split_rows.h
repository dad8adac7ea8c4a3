#pragma once

#include "compiler/autoschedule/templates/open_schedule.h"
#include "compiler/target.h"

namespace kiln::autoschedule {

/// `given` with long reductions of few rows, as of a whole tensor, in two stages: parts of each
/// row, as many as give all multiprocessors of the GPU something to do, and their results. Of sizes
/// that a call brings nothing is split, since the parts are the order of the sum.
OpenSchedule with_split_rows(const language::Kernel& kernel, OpenSchedule given,
                             const Target& target, const CompileOptions& options);

}  // namespace kiln::autoschedule
