#pragma once

#include "compiler/schedule/graph/stage_graph.h"

namespace kiln::schedule {

/// Gives every scatter a stage that writes its base straight into its output: the base itself when
/// nothing else uses it, else a copy `S.base`.
void place_scatter_bases(StageGraph& graph);

/// Whether different values of a data axis of a scatter never update one element, because the
/// indices that do not depend on data tell the axis.
bool tells_elements_apart(const StageGraph& graph, StageId scatter, AxisId axis);

}  // namespace kiln::schedule
