#include "compiler/autoschedule/choose_schedule.h"

#include <algorithm>

#include "compiler/autoschedule/stage_schedules.h"
#include "compiler/schedule/apply_steps.h"

namespace kiln {
namespace {

using autoschedule::AxisId;
using autoschedule::Chooser;
using autoschedule::Stage;
using autoschedule::StageGraph;
using autoschedule::StageId;
using schedule::Attach;

/// The stage at the root whose loops a stage stands in. Inits and cells belong to their scan.
StageId root_of(const StageGraph& graph, StageId id) {
  const Stage& stage = graph[id];
  if (stage.is_init) return stage.init_of;
  return stage.attach.kind == Attach::Kind::At ? root_of(graph, stage.attach.stage) : id;
}

std::vector<bool> touched_roots(const StageGraph& graph) {
  std::vector<bool> touched(graph.stages.size(), false);
  for (StageId id = 0; id < graph.stages.size(); ++id) {
    const bool is_loops = graph[id].attach.kind != Attach::Kind::Inline;
    if (graph[id].is_touched && is_loops) touched[root_of(graph, id)] = true;
  }
  return touched;
}

bool has_bound_loop(const StageGraph& graph, StageId root) {
  for (StageId id = 0; id < graph.stages.size(); ++id) {
    if (root_of(graph, id) != root) continue;
    for (const AxisId leaf : graph[id].leaves) {
      if (graph.axes[leaf].thread != ir::ThreadAxis::None) return true;
    }
  }
  return false;
}

bool is_attach_axis(const StageGraph& graph, AxisId axis) {
  return std::any_of(graph.stages.begin(), graph.stages.end(), [&](const Stage& stage) {
    return stage.is_live && stage.attach.kind == Attach::Kind::At && stage.attach.axis == axis;
  });
}

/// The id by which steps call a stage or an axis of the graph.
template <typename Ids>
uint32_t step_id_of(const Ids& ids, uint32_t position) {
  const auto found = std::find(ids.begin(), ids.end(), position);
  KILN_CHECK(found != ids.end());
  return static_cast<uint32_t>(found - ids.begin());
}

/// A stage with steps but none that binds: its outermost loop (after that of time, in a scan) goes
/// to the threads, which changes the order of nothing.
void bind_outermost(const Chooser& chooser, StageId position, bool has_time) {
  const Stage& stage = chooser.graph[position];
  std::vector<AxisId> leaves = stage.leaves;
  if (has_time) std::erase(leaves, stage.time_axis());
  if (leaves.empty()) return;
  const AxisId leaf = leaves[0];
  const schedule::Axis& axis = chooser.graph.axes[leaf];
  const bool is_free = axis.kind == schedule::AxisKind::Data && axis.annotated_by < 0;
  if (!is_free) return;
  const StageId id = step_id_of(chooser.graph.stage_of_id, position);
  const AxisId loop = step_id_of(chooser.graph.axis_of_id, leaf);
  if (is_attach_axis(chooser.graph, leaf)) {
    chooser.steps.bind(id, loop, "blockIdx.x");
    return;
  }
  const auto [block, thread] = chooser.steps.split(id, loop, 256);
  chooser.steps.bind(id, block, "blockIdx.x");
  chooser.steps.bind(id, thread, "threadIdx.x");
}

/// The inits of a scan and what stands directly in its time loop.
std::vector<StageId> nests_of_scan(const StageGraph& graph, StageId scan) {
  std::vector<StageId> nests;
  for (const StageId id : graph.stage_of_id) {
    const Stage& stage = graph[id];
    const bool is_init = stage.is_init && stage.init_of == scan;
    const bool in_time = stage.attach.kind == Attach::Kind::At && stage.attach.stage == scan;
    if (stage.is_live && (is_init || in_time)) nests.push_back(id);
  }
  return nests;
}

void bind_untouched(const Chooser& chooser, StageId root) {
  if (chooser.graph[root].kind == Stage::Kind::Scatter) {
    return autoschedule::bind_scatter(chooser, root);
  }
  if (chooser.graph[root].kind == Stage::Kind::Compute) {
    return autoschedule::bind_elements(chooser, root);
  }
  for (const StageId id : nests_of_scan(chooser.graph, root)) {
    autoschedule::bind_elements(chooser, id);
  }
}

void schedule_untouched(const Chooser& chooser, StageId root) {
  switch (chooser.graph[root].kind) {
    case Stage::Kind::Scan: return autoschedule::schedule_scan(chooser, root);
    case Stage::Kind::Scatter: return autoschedule::schedule_scatter(chooser, root);
    default: return autoschedule::schedule_compute(chooser, root, true);
  }
}

void bind_touched(const Chooser& chooser, StageId root) {
  if (has_bound_loop(chooser.graph, root)) return;
  if (chooser.graph[root].kind == Stage::Kind::Scatter) return;
  if (chooser.graph[root].kind == Stage::Kind::Compute) {
    return bind_outermost(chooser, root, false);
  }
  for (const StageId id : nests_of_scan(chooser.graph, root)) {
    bind_outermost(chooser, id, true);
  }
}

}  // namespace

language::Schedule choose_schedule(const language::Kernel& kernel, const language::Schedule& given,
                                   const Target& target, const CompileOptions& options) {
  if (!options.automatic || target.kind == TargetKind::Interpreter) return given;
  StageGraph graph = schedule::build_stage_graph(kernel);
  schedule::apply_steps(graph, given);
  const std::vector<bool> touched = touched_roots(graph);
  autoschedule::StepWriter steps(given, static_cast<AxisId>(graph.axis_of_id.size()));
  const Chooser chooser{graph, options, steps};

  for (const StageId id : graph.stage_of_id) {
    const Stage& stage = graph[id];
    if (!stage.is_live || stage.is_init || stage.attach.kind != Attach::Kind::Root) continue;
    const bool is_scan = stage.kind == Stage::Kind::Scan;
    if (!is_scan && !schedule::runs_over_axes(stage)) continue;
    if (target.kind == TargetKind::Cuda) {
      touched[id] ? bind_touched(chooser, id) : bind_untouched(chooser, id);
    } else if (!touched[id]) {
      schedule_untouched(chooser, id);
    }
  }
  return std::move(steps).schedule();
}

}  // namespace kiln
