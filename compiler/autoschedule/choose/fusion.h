#pragma once

#include "compiler/autoschedule/recognise/machine.h"
#include "compiler/autoschedule/templates/open_schedule.h"
#include "compiler/target.h"

namespace kiln::autoschedule {

/// `given` with steps that keep what passes between stages out of memory, for stages without steps
/// on a CPU:
///
/// - a stage that is read once for each of its elements is computed where it is read;
/// - stages over rows that only meet in rows, as the maximum, the exponentials and the sum of a
///   softmax, are computed row by row in the loop of the stage that reads them last, with vectors
///   along the row, or across rows that are shorter than a vector, and rows on several cores.
///   Reductions inside of expressions of such short rows become stages for that.
///
/// No element is computed twice.
OpenSchedule fuse_stages(const language::Kernel& kernel, OpenSchedule given,
                         const CompileOptions& options, const Machine& machine);

}  // namespace kiln::autoschedule
