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
  stage.cell_of = from.cell_of;
  if (from.cell_of >= 0) {
    const auto scan = static_cast<StageId>(from.cell_of);
    stage.attach = {Attach::Kind::At, scan, graph[scan].time, -1};
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
  stage.leaves = stage.data;
  stage.leaves.insert(stage.leaves.end(), stage.reduce.begin(), stage.reduce.end());
  graph.stages.push_back(std::move(stage));
  const auto place = std::find(graph.order.begin(), graph.order.end(), neighbour);
  KILN_CHECK(place != graph.order.end());
  graph.order.insert(before ? place : place + 1, id);
  return id;
}

ir::Expr reduce_over(const ir::Reduce& reduce, const ir::Substitution& values,
                     std::vector<ir::VarRef> axes, bool from_identity) {
  const auto substituted = [&](const std::vector<ir::Expr>& list) {
    std::vector<ir::Expr> result;
    for (const ir::Expr& expr : list)
      result.push_back(ir::substitute(expr, values));
    return result;
  };
  return ir::Reduce::make(reduce.how, substituted(reduce.sources),
                          reduce.condition ? ir::substitute(reduce.condition, values) : ir::Expr(),
                          from_identity ? std::vector<ir::Expr>() : substituted(reduce.init),
                          std::move(axes));
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
