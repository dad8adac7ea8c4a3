#pragma once

#include <vector>

#include "compiler/language/tables/step.h"
#include "compiler/schedule/graph/stage_graph.h"

namespace kiln::autoschedule {

/// A schedule, and stages that it names without saying how they run: they are scheduled all the
/// same.
struct OpenSchedule {
  language::Schedule schedule;
  std::vector<schedule::StageId> open;
};

/// The stages of a kernel after the steps so far, the open ones as if no step named them. Axes that
/// an open stage reduces over and a step has fused are one axis, by which elements follow each
/// other: an index by the first of them is 0, by the last the fused axis.
schedule::StageGraph graph_of(const language::Kernel& kernel, const OpenSchedule& given);

}  // namespace kiln::autoschedule
