// What a stage on a GPU has that no other template is for.
#include "compiler/autoschedule/templates/thread_sketches.h"

#include "compiler/autoschedule/templates/gpu_machine.h"
#include "compiler/autoschedule/templates/parameters.h"
#include "compiler/autoschedule/templates/scan_threads.h"
#include "compiler/autoschedule/templates/shared_transposes.h"
#include "compiler/autoschedule/templates/stage_schedules.h"

namespace kiln::autoschedule {

std::vector<Sketch> thread_sketches(const Chooser& chooser, StageId root) {
  const StageGraph& graph = chooser.graph;
  std::vector<Sketch> transposes = shared_transpose_sketches(chooser, root);
  if (!transposes.empty()) return transposes;
  if (graph[root].kind == Stage::Kind::Scatter) {
    return {{.name = "threads",
             .parameters = {block_parameter()},
             .write = [&graph, root](StepWriter& steps, const Values& values) {
               bind_scatter(graph, steps, root, values.get("block", 256));
             }}};
  }
  if (graph[root].kind == Stage::Kind::Scan) return scan_thread_sketches(chooser, root);
  const auto [lanes, vectors] = elements_of_thread(graph, root, gpu_machine(chooser.arch));
  std::vector<Parameter> parameters = {block_parameter()};
  if (lanes > 1) parameters.push_back({"lanes", {1, lanes}, lanes});
  if (vectors > 1) parameters.push_back({"vectors", {1, vectors}, vectors});
  return {{.name = "threads",
           .parameters = std::move(parameters),
           .write = [&graph, root](StepWriter& steps, const Values& values) {
             bind_elements(graph, steps, root, values.get("block", 256),
                           {.lanes = values.get("lanes", 1), .vectors = values.get("vectors", 1)});
           }}};
}

}  // namespace kiln::autoschedule
