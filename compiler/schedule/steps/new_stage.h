#pragma once

#include "compiler/schedule/bounds/nest.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {

/// A cache_read with a layout: the copy has one element for each iteration of the loops named.
void make_packed_copy(const StepContext& context);

/// A record for a stage that computes for `source`, not yet in the graph: its name, its place among
/// the cells of scans, where it is computed.
Stage stage_for(const StageGraph& graph, StageId source, const NewStage& made);

/// A root axis of the stage that the graph gets next.
AxisId add_axis(StageGraph& graph, const std::string& name, AxisKind kind, ir::Expr minimum,
                ir::Expr extent);

/// Enters a stage into the graph, right before or right after another one in the order.
StageId enter_stage(StageGraph& graph, Stage stage, StageId neighbour, bool before);

/// The conditions in other variables. With `data_only`, those of reductions are left out.
std::vector<Condition> conditions_in(const std::vector<Condition>& conditions,
                                     const ir::Substitution& values, bool data_only);

/// The whole of a stage, as regions.
std::vector<Region> all_of(const Stage& stage);

}  // namespace kiln::schedule
