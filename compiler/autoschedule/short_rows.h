#pragma once

#include "compiler/autoschedule/stage_schedules.h"

namespace kiln::autoschedule {

/// Stages of which an element of the first `dimensions` dimensions is a row; the last of them has
/// the loops over rows that the others are computed in.
struct RowStages {
  std::vector<StageId> members;  // without the last
  StageId last;
  size_t dimensions;
};

/// Whether rows would leave lanes of a vector unused, and there are many of them.
bool are_short(const Chooser& chooser, const RowStages& rows);

/// Vectors across the rows: a lane is a row, in which sums keep their order. Returns the loop over
/// groups of rows.
AxisId write_short_rows(const Chooser& chooser, StepWriter& steps, const RowStages& rows);

}  // namespace kiln::autoschedule
