// A rewrite that only divides the work, as of products that are computed one after the other, names
// stages that are still to be scheduled: its steps are applied, and they count as untouched.
#include "compiler/autoschedule/templates/open_schedule.h"

#include "compiler/schedule/steps/apply_steps.h"

namespace kiln::autoschedule {

schedule::StageGraph graph_of(const language::Kernel& kernel, const OpenSchedule& given) {
  schedule::StageGraph graph = schedule::build_stage_graph(kernel);
  schedule::apply_steps(graph, given.schedule);
  for (const schedule::StageId id : given.open)
    graph.stages[id].is_touched = false;
  return graph;
}

}  // namespace kiln::autoschedule
