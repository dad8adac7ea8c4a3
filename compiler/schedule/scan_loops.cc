#include "compiler/schedule/scan_loops.h"

#include "compiler/ir/build.h"

namespace kiln::schedule {

Nest make_scan_nest(const StageGraph& graph, StageId scan, const analysis::Facts& sizes) {
  return make_nest(graph, scan, {}, {}, sizes);
}

std::vector<Loop> shared_loops_of(const StageGraph& graph, const NestPlan& plan, StageId stage) {
  return {};
}

ir::Expr time_value(const StageGraph& graph, const NestPlan& plan, StageId scan) {
  return plan.nests[scan].values.at(graph.axes[graph[scan].time].value);
}

}  // namespace kiln::schedule
