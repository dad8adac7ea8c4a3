#pragma once

#include <vector>

#include "compiler/autoschedule/recognise/structure.h"
#include "compiler/autoschedule/templates/step_writer.h"

namespace kiln::autoschedule {

/// The last axis of a stage, with those before that are one axis with it in each tensor, as the
/// lines of an image and what they consist of are; none of them is `across`.
std::vector<AxisId> line_of(const StageGraph& graph, StageId stage, AxisId across);

/// All axes that are neither.
std::vector<AxisId> others_of(const StageGraph& graph, StageId stage, AxisId across,
                              const std::vector<AxisId>& line);

}  // namespace kiln::autoschedule
