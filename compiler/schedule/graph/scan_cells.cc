// The cell of a scan is what depends on its state and is needed by its updates. It is computed
// inside the time loop, which is the outermost loop of each of its stages, and state, init and
// update share the scan's output:
//   s[0, i] = X[i];  s[t, i] = s[t - 1, i] * 2   ->   init and update both write s, in place
#include "compiler/schedule/graph/scan_cells.h"

#include <algorithm>
#include <map>

#include "compiler/ir/build.h"
#include "compiler/schedule/graph/reads.h"
#include "runtime/core/error.h"

namespace kiln::schedule {

std::map<TensorId, Uses> uses_of_tensors(const StageGraph& graph) {
  std::map<TensorId, Uses> uses;
  for (const Stage& stage : graph.stages) {
    for (const TensorId tensor : direct_inputs(graph, stage)) {
      if (runs_over_axes(stage)) ++uses[tensor].reads;
    }
    for (const TensorId tensor : stage.as_scan.init)
      ++uses[tensor].scan_places;
    for (const TensorId tensor : stage.as_scan.update)
      ++uses[tensor].scan_places;
  }
  return uses;
}

StageId add_copy(StageGraph& graph, StageId user, TensorId source, std::string_view what) {
  const auto id = static_cast<StageId>(graph.stages.size());
  const Stage from = graph[source.stage];
  Stage copy;
  copy.kind = Stage::Kind::Compute;
  copy.name = fmt::format("{}.{}", graph[user].name, what);
  copy.origin = graph[user].origin;
  copy.types = {from.types[source.output]};
  copy.shapes = {from.shapes[source.output]};
  std::vector<ir::Expr> indices;
  for (size_t d = 0; d < copy.shapes[0].size(); ++d) {
    const std::string name =
        from.kind != Stage::Kind::Compute ? fmt::format("i{}", d) : graph.axes[from.data[d]].name;
    const ir::VarRef value = ir::Var::make(name);
    copy.data.push_back(static_cast<AxisId>(graph.axes.size()));
    graph.axes.push_back(Axis{.name = name,
                              .kind = AxisKind::Data,
                              .stage = id,
                              .value = value,
                              .minimum = ir::index(0),
                              .extent = copy.shapes[0][d]});
    indices.push_back(value);
  }
  copy.bodies = {
      ir::TensorRead::make({copy.types[0], 1}, source.stage, source.output, std::move(indices))};
  graph.stages.push_back(std::move(copy));
  return id;
}

namespace {

/// For each stage but the scan itself, whether it depends on a state of the scan.
std::vector<bool> depends_on_state(const StageGraph& graph, StageId scan) {
  std::vector<bool> depends(graph.stages.size(), false);
  for (const TensorId state : graph[scan].as_scan.state)
    depends[state.stage] = true;
  // Stages that the compiler added stand behind their readers, so one walk is not enough.
  for (bool changed = true; changed;) {
    changed = false;
    for (StageId id = 0; id < graph.stages.size(); ++id) {
      if (depends[id] || id == scan) continue;
      const std::vector<TensorId> inputs = direct_inputs(graph, graph[id]);
      if (std::any_of(inputs.begin(), inputs.end(),
                      [&](TensorId tensor) { return depends[tensor.stage]; })) {
        depends[id] = changed = true;
      }
    }
  }
  return depends;
}

/// Whether a stage may be written straight into a scan's output: nothing else uses it.
bool is_only_for_scan(const StageGraph& graph, TensorId tensor,
                      const std::map<TensorId, Uses>& uses, bool may_be_read) {
  if (graph[tensor.stage].kind != Stage::Kind::Compute) return false;
  if (graph.is_parameter(tensor)) return false;
  const Uses& use = uses.at(tensor);
  return use.scan_places == 1 && (may_be_read || use.reads == 0);
}

bool all_outputs_are_inits_of(const Stage& scan, const Stage& init, StageId id) {
  for (uint32_t output = 0; output < init.types.size(); ++output) {
    const TensorId tensor{id, output};
    if (std::find(scan.as_scan.init.begin(), scan.as_scan.init.end(), tensor) ==
        scan.as_scan.init.end())
      return false;
  }
  return true;
}

void copy_inputs_of(StageGraph& graph, StageId scan_id, const std::map<TensorId, Uses>& uses) {
  const std::vector<bool> in_cell = depends_on_state(graph, scan_id);
  for (size_t s = 0; s < graph[scan_id].as_scan.init.size(); ++s) {
    const TensorId init = graph[scan_id].as_scan.init[s];
    if (!is_only_for_scan(graph, init, uses, false) ||
        !all_outputs_are_inits_of(graph[scan_id], graph[init.stage], init.stage)) {
      const TensorId copy{add_copy(graph, scan_id, init, "init"), 0};
      graph.stages[scan_id].as_scan.init[s] = copy;
    }
    const TensorId update = graph[scan_id].as_scan.update[s];
    const bool depends = in_cell[update.stage];
    if (!is_only_for_scan(graph, update, uses, depends)) {
      const TensorId copy{add_copy(graph, scan_id, update, "update"), 0};
      graph.stages[scan_id].as_scan.update[s] = copy;
    }
  }
}

void refuse_outside_use(const StageGraph& graph, StageId scan, StageId user, TensorId used) {
  at_stage(graph, user, [&] {
    fail(ErrorKind::InvalidArgument, "SCAN_STATE",
         "{} reads {}, which depends on the state of {}, but is no part of its update; read {} "
         "instead",
         graph[user].name, graph.tensor_name(used), graph[scan].name, graph[scan].name);
  });
}

/// The stages whose values the updates need, among those that depend on the state.
std::vector<bool> reached_from_updates(const StageGraph& graph, const Stage& scan,
                                       const std::vector<bool>& depends) {
  std::vector<bool> reached(graph.stages.size(), false);
  std::vector<StageId> open;
  for (const TensorId update : scan.as_scan.update)
    open.push_back(update.stage);
  while (!open.empty()) {
    const StageId id = open.back();
    open.pop_back();
    if (reached[id]) continue;
    reached[id] = true;
    for (const TensorId input : direct_inputs(graph, graph[id])) {
      if (depends[input.stage]) open.push_back(input.stage);
    }
  }
  return reached;
}

void refuse_inner_scans(const StageGraph& graph, StageId scan, const std::vector<bool>& depends) {
  for (StageId id = 0; id < graph.stages.size(); ++id) {
    if (!graph[id].is_live || graph[id].kind != Stage::Kind::Scan || !depends[id]) continue;
    at_stage(graph, id, [&] {
      fail(ErrorKind::Unsupported, "NESTED_SCAN",
           "{} depends on the state of {}, but a scan inside a scan is not supported; write the "
           "inner one as a reduction",
           graph[id].name, graph[scan].name);
    });
  }
}

/// The dimension of a stage whose axis says at which step it reads a tensor of the cell, -1 where
/// it reads none.
int find_time_dimension(const StageGraph& graph, const Stage& stage) {
  int found = -1;
  for (const ir::Expr& body : stage.bodies) {
    for_each_read(body, [&](const ir::TensorRead& read) {
      const int time = graph[read.stage].time_dimension;
      if (time < 0 || graph[read.stage].kind == Stage::Kind::Scan || found >= 0) return;
      const ir::Expr& step = read.indices[static_cast<size_t>(time)];
      for (size_t d = 0; d < stage.data.size(); ++d) {
        if (ir::uses_var(step, graph.axes[stage.data[d]].value)) found = static_cast<int>(d);
      }
    });
  }
  return found;
}

/// Time is the outermost loop, wherever it stands among the dimensions.
void put_time_first(Stage& stage) {
  std::erase(stage.loops.leaves, stage.time_axis());
  stage.loops.leaves.insert(stage.loops.leaves.begin(), stage.time_axis());
}

void mark_time(StageGraph& graph, StageId scan_id, const std::vector<bool>& reached) {
  const Stage scan = graph[scan_id];
  for (size_t s = 0; s < scan.as_scan.state.size(); ++s) {
    for (const TensorId tensor :
         {scan.as_scan.state[s], scan.as_scan.update[s], scan.as_scan.init[s]}) {
      graph.stages[tensor.stage].time_dimension = scan.time_dimension;
    }
    put_time_first(graph.stages[scan.as_scan.init[s].stage]);
  }
  for (const StageId id : graph.order) {
    Stage& stage = graph.stages[id];
    if (stage.kind != Stage::Kind::Compute || !reached[id]) continue;
    if (stage.time_dimension < 0) stage.time_dimension = find_time_dimension(graph, stage);
    KILN_CHECK(stage.time_dimension >= 0);
    put_time_first(stage);
  }
}

void mark_cell(StageGraph& graph, StageId scan_id) {
  const std::vector<bool> depends = depends_on_state(graph, scan_id);
  refuse_inner_scans(graph, scan_id, depends);
  const std::vector<bool> reached = reached_from_updates(graph, graph[scan_id], depends);
  mark_time(graph, scan_id, reached);
  for (StageId id = 0; id < graph.stages.size(); ++id) {
    Stage& stage = graph.stages[id];
    if (stage.kind == Stage::Kind::Placeholder) continue;
    if (stage.kind == Stage::Kind::Compute && reached[id]) {
      KILN_CHECK(stage.role.cell_of < 0);
      stage.role.cell_of = static_cast<int>(scan_id);
      stage.attach = {Attach::Kind::At, scan_id, graph[scan_id].as_scan.time, -1};
      continue;
    }
    if (!stage.is_live || id == scan_id) continue;
    for (const TensorId input : direct_inputs(graph, stage)) {
      if (!depends[input.stage]) continue;
      refuse_outside_use(graph, scan_id, id, input);
    }
  }
  for (const TensorId update : graph[scan_id].as_scan.update)
    graph.stages[update.stage].role.is_update = true;
  for (const TensorId init : graph[scan_id].as_scan.init) {
    if (depends[init.stage]) refuse_outside_use(graph, scan_id, init.stage, init);
    graph.stages[init.stage].role.is_init = true;
    graph.stages[init.stage].role.init_of = scan_id;
  }
  for (const TensorId parameter : graph.kernel->definition.parameters) {
    if (!reached[parameter.stage]) continue;
    fail(ErrorKind::InvalidArgument, "SCAN_STATE",
         "{} is computed inside {} and cannot be an argument; pass {} instead",
         graph.tensor_name(parameter), graph[scan_id].name, graph[scan_id].name);
  }
}

}  // namespace

void copy_shared_scan_inputs(StageGraph& graph) {
  const std::map<TensorId, Uses> uses = uses_of_tensors(graph);
  const size_t count = graph.stages.size();
  for (StageId id = 0; id < count; ++id) {
    if (graph[id].kind == Stage::Kind::Scan) copy_inputs_of(graph, id, uses);
  }
}

void find_scan_cells(StageGraph& graph) {
  for (StageId id = 0; id < graph.stages.size(); ++id) {
    if (graph[id].kind == Stage::Kind::Scan) mark_cell(graph, id);
  }
}

}  // namespace kiln::schedule
