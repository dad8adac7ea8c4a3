#pragma once

#include "compiler/schedule/graph/stage_graph.h"

namespace kiln::schedule {

/// Gives every scatter a stage that writes its base straight into its output: the base itself when
/// nothing else uses it, else a copy `S.base`.
void place_scatter_bases(StageGraph& graph);

/// Whether different values of a data axis of a scatter never update one element, because the
/// indices that do not depend on data tell the axis.
bool tells_elements_apart(const StageGraph& graph, StageId scatter, AxisId axis);
/// Likewise of a loop of it: whether different values may update one element.
bool may_meet(const StageGraph& graph, StageId scatter, AxisId loop);

/// Whether a GPU has the update of an element in one piece: sums of integers, minima and maxima, of
/// 32 and 64 bits.
bool is_in_one_piece(const Stage& scatter);
/// Whether threads or blocks may update one element at once, as loops are bound.
bool has_meeting_threads(const StageGraph& graph, StageId scatter);

}  // namespace kiln::schedule
