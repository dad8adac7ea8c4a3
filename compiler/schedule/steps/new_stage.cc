// What all steps that make stages share: a record with the source's place in a scan's cell, root
// axes, its place in the order of the graph.
#include "compiler/schedule/steps/new_stage.h"

#include <algorithm>

#include "compiler/ir/build.h"

namespace kiln::schedule {

Stage stage_for(const StageGraph& graph, StageId source, const NewStage& made) {
  const Stage& from = graph[source];
  Stage stage;
  stage.kind = Stage::Kind::Compute;
  stage.name = made.name;
  stage.origin = from.origin;
  stage.from_branch = from.from_branch;
  stage.is_live = from.is_live;
  stage.is_touched = true;
  stage.role.cell_of = from.role.cell_of;
  if (from.role.cell_of >= 0) {
    const auto scan = static_cast<StageId>(from.role.cell_of);
    stage.attach = {Attach::Kind::At, scan, graph[scan].as_scan.time, -1};
  }
  return stage;
}

AxisId add_axis(StageGraph& graph, const std::string& name, AxisKind kind, ir::Expr minimum,
                ir::Expr extent) {
  graph.axes.push_back(Axis{.name = name,
                            .kind = kind,
                            .stage = static_cast<StageId>(graph.stages.size()),
                            .value = ir::Var::make(name),
                            .minimum = std::move(minimum),
                            .extent = std::move(extent)});
  return static_cast<AxisId>(graph.axes.size() - 1);
}

StageId enter_stage(StageGraph& graph, Stage stage, StageId neighbour, bool before) {
  const auto id = static_cast<StageId>(graph.stages.size());
  stage.loops.start_with(stage.data);
  stage.loops.leaves.insert(stage.loops.leaves.end(), stage.reduce.begin(), stage.reduce.end());
  graph.stages.push_back(std::move(stage));
  const auto place = std::find(graph.order.begin(), graph.order.end(), neighbour);
  KILN_CHECK(place != graph.order.end());
  graph.order.insert(before ? place : place + 1, id);
  return id;
}

std::vector<Condition> conditions_in(const std::vector<Condition>& conditions,
                                     const ir::Substitution& values, bool data_only) {
  std::vector<Condition> result;
  for (const Condition& condition : conditions) {
    if (condition.is_reduce && data_only) continue;
    result.push_back({ir::substitute(condition.holds, values), condition.is_reduce});
  }
  return result;
}

std::vector<Region> all_of(const Stage& stage) {
  std::vector<Region> region;
  for (const ir::Expr& extent : stage.shapes[0])
    region.push_back({ir::index(0), extent, true});
  return region;
}

}  // namespace kiln::schedule
