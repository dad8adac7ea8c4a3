#pragma once

#include <optional>

#include "compiler/autoschedule/templates/stage_schedules.h"

namespace kiln::autoschedule {

/// Of a reduction over a small window that slides along the data, as of a depthwise convolution or
/// of pooling: the steps of the window are unrolled for a few lines at once, which share what they
/// read. Nothing where the window is not small or the lines do not overlap.
std::optional<Sketch> window_sketch(const Chooser& chooser, StageId stage, bool may_be_parallel);

}  // namespace kiln::autoschedule
