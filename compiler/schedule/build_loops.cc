// From definition and steps to loops, in order: stages, steps, bounds, loops, and what was decided
// that the steps do not say (notes). Reads that are wrong whatever the schedule are refused first,
// so that the sentence about them does not depend on it.
#include "compiler/schedule/build_loops.h"

#include "compiler/ir/print.h"
#include "compiler/schedule/bounds/check_reads.h"
#include "compiler/schedule/bounds/infer_bounds.h"
#include "compiler/schedule/emit/emit.h"
#include "compiler/schedule/emit/hint_notes.h"
#include "compiler/schedule/emit/thread_reduction.h"
#include "compiler/schedule/graph/stage_graph.h"
#include "compiler/schedule/steps/apply_steps.h"

namespace kiln {

using namespace schedule;  // NOLINT: this file is the front of that namespace

namespace {

/// What was decided that the steps do not say.
std::vector<std::string> notes_of(const StageGraph& graph, const NestPlan& plan) {
  std::vector<std::string> notes;
  for (const StageId id : graph.order) {
    if (graph[id].kind != Stage::Kind::Scan || !graph[id].is_live) continue;
    for (uint32_t output = 0; output < graph[id].types.size(); ++output) {
      const Storage& storage = plan.storage.at({id, output});
      if (storage.rolling < 0) continue;
      notes.push_back(fmt::format("{} keeps {} steps at a time, since no more of it is read",
                                  storage.buffer->name,
                                  storage.buffer->shape[static_cast<size_t>(storage.rolling)]));
    }
    std::string loops;
    for (const Loop& loop : plan.nests[id].loops) {
      if (loop.is_shared) loops += (loops.empty() ? "" : ", ") + loop.var->name;
    }
    if (loops.empty()) continue;
    notes.push_back(fmt::format("the columns of {} are independent, so its time runs inside {}",
                                graph[id].name, loops));
  }
  return notes;
}

/// For what passes refuse.
void add_lines(const StageGraph& graph, const NestPlan& plan, const language::Schedule& schedule,
               ir::Kernel& kernel) {
  for (const auto& [tensor, storage] : plan.storage)
    kernel.buffer_lines.try_emplace(storage.buffer, location_of(graph, tensor.stage));
  for (const Nest& nest : plan.nests) {
    for (const Loop& loop : nest.loops) {
      const int step = graph.axes[loop.axis].annotated_by;
      if (step < 0) continue;
      kernel.loop_lines[loop.var] = location_of(graph, schedule.steps[static_cast<size_t>(step)]);
    }
  }
}

}  // namespace

ir::Kernel build_loops(const language::Kernel& kernel, const language::Schedule& steps,
                       const Target& target, const CompileOptions& options) {
  StageGraph graph = build_stage_graph(kernel);
  refuse_wrong_reads(graph);
  apply_steps(graph, steps);
  if (target.traits().has_threads) put_threads_first(graph);
  const NestPlan plan = infer_bounds(graph, target.kind);
  check_loops(graph, plan, steps, target.kind, options);

  ir::Kernel result;
  result.name = kernel.names.kernel;
  result.sizes = graph.sizes;
  for (const TensorId parameter : kernel.definition.parameters) {
    result.parameters.push_back(plan.storage.at(parameter).buffer);
    result.is_output.push_back(kernel.definition.is_output(parameter));
  }
  result.body = emit_loops(graph, plan, target.kind, result.checks);
  result.notes = notes_of(graph, plan);
  add_hint_notes(graph, plan, target.kind, result.notes);
  add_lines(graph, plan, steps, result);
  return result;
}

}  // namespace kiln
