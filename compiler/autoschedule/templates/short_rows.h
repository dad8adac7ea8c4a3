#pragma once

#include "compiler/autoschedule/recognise/rows.h"
#include "compiler/autoschedule/templates/stage_schedules.h"

namespace kiln::autoschedule {

/// Whether rows would leave lanes of a vector unused, and there are many of them.
bool are_short(const Chooser& chooser, const RowStages& rows);

/// Vectors across the rows: a lane is a row, in which sums keep their order. Returns the loop over
/// groups of rows.
AxisId write_short_rows(const Chooser& chooser, StepWriter& steps, const RowStages& rows);

}  // namespace kiln::autoschedule
