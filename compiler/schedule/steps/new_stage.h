#pragma once

#include "compiler/schedule/bounds/nest.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {

/// What a step makes that defines a stage, as the step table has it.
struct NewStage {
  std::string name;
  std::vector<std::string> data;    // names of its axes
  std::vector<std::string> reduce;  // likewise
  std::vector<AxisId> reduced;      // cache_write: the reduction axes of the step's stage so far
  std::vector<StageId> readers;     // cache_read, cache_padded
};

void apply_cache_read(const StepContext& context, const NewStage& made);
/// A cache_read with a layout: the copy has one element for each iteration of the loops named.
void apply_packed_read(const StepContext& context, const NewStage& made);
/// A stage of its own for what the one reader reads of a tensor with a constant around it.
void apply_cache_padded(const StepContext& context, const NewStage& made);
void apply_cache_write(const StepContext& context, const NewStage& made);
void apply_rfactor(const StepContext& context, const NewStage& made);
void apply_reduction_stage(const StepContext& context, const NewStage& made);

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
