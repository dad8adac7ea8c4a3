#pragma once

#include <vector>

#include "compiler/autoschedule/recognise/structure.h"

namespace kiln::autoschedule {

/// Tensors that are not asked.
using Apart = std::vector<schedule::TensorId>;

/// Whether an axis of known extent and the next one are one axis of each tensor that a stage reads,
/// as the lines of an image and what they consist of, and are named nowhere else.
bool goes_on_into(const StageGraph& graph, StageId stage, AxisId axis, AxisId next,
                  const Apart& apart = {});

/// The last of some axes, with those before that go on into each other and into it, also in what is
/// read and may yet be written out where it is read.
std::vector<AxisId> joined_last(const StageGraph& graph, StageId stage,
                                const std::vector<AxisId>& axes, const Apart& apart = {});

}  // namespace kiln::autoschedule
