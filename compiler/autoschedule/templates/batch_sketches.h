#pragma once

#include "compiler/autoschedule/templates/stage_schedules.h"

namespace kiln::autoschedule {

/// Products that lie side by side: C[.., b] = sum(A[.., b, ..] * B[.., b, ..]), a row of A's and a
/// column of B's for each element. Vectors go along b, a tile of rows and columns is in registers,
/// and a factor whose elements of one b after the other are apart is copied first. Nothing for
/// anything else.
std::vector<Sketch> batch_sketches(const Chooser& chooser, StageId stage, bool may_be_parallel);

}  // namespace kiln::autoschedule
