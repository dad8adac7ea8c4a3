// Sketches of scatters: only axes that are an index by themselves may run at once, since their
// values never update one element.
#include "compiler/autoschedule/templates/parameters.h"
#include "compiler/autoschedule/templates/stage_cycles.h"
#include "compiler/autoschedule/templates/stage_schedules.h"
#include "compiler/schedule/graph/scatters.h"

namespace kiln::autoschedule {

std::vector<Sketch> scatter_sketches(const Chooser& chooser, StageId id) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  if (stage.data.empty()) return {};
  const Parameter parallel = parallel_parameter(is_worth_sharing(chooser, id));
  if (schedule::tells_elements_apart(graph, id, stage.data[0])) {
    return {{.name = "rows",
             .parameters = {parallel},
             .write = [id, first = stage.data[0]](StepWriter& steps, const Values& values) {
               if (values.get("parallel", 0) != 0) steps.parallel(id, first);
             }}};
  }
  const AxisId last = stage.data.back();
  const std::optional<int64_t> factor = vector_factor(graph, id, last, kVectorBytes);
  if (!factor || !schedule::tells_elements_apart(graph, id, last)) return {};
  return {{.name = "columns",
           .parameters = {lanes_parameter(graph, {last}, *factor), parallel},
           .write = [id, data = stage.data](StepWriter& steps, const Values& values) {
             if (values.get("parallel", 0) == 0) return;
             const auto [tiles, lanes] = steps.split(id, data.back(), values.get("lanes", 1));
             std::vector<AxisId> order = {tiles};
             order.insert(order.end(), data.begin(), data.end() - 1);
             order.push_back(lanes);
             steps.reorder(id, order);
             steps.parallel(id, tiles);
             steps.vectorize(id, lanes);
           }}};
}

}  // namespace kiln::autoschedule
