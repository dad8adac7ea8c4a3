// From definition and steps to loops, in order: stages, steps, bounds, loops, and what was decided
// that the steps do not say (notes). Reads that are wrong whatever the schedule are refused first,
// so that the sentence about them does not depend on it.
#include "compiler/schedule/build_loops.h"

#include <algorithm>

#include "compiler/ir/build.h"
#include "compiler/ir/print.h"
#include "compiler/schedule/bounds/check_reads.h"
#include "compiler/schedule/bounds/infer_bounds.h"
#include "compiler/schedule/emit/emit.h"
#include "compiler/schedule/emit/hint_notes.h"
#include "compiler/schedule/emit/thread_reduction.h"
#include "compiler/schedule/graph/running_scan.h"
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

/// Where a GPU adds up floats one after the other, in so few threads that it has nothing else to
/// do.
void note_order_of_sums(const StageGraph& graph, const CompileOptions& options,
                        std::vector<std::string>& notes) {
  constexpr int64_t kManyColumns = 2048;
  constexpr int64_t kManySteps = 4096;
  for (const StageId id : graph.order) {
    const Stage& stage = graph[id];
    if (stage.kind != Stage::Kind::Scan || !stage.is_live || stage.as_scan.steps_in_part > 0)
      continue;
    const std::optional<RunningScan> running = running_scan(graph, id);
    if (!running || may_regroup(*running, options) || options.strict) continue;
    int64_t columns = 1;
    for (size_t d = 0; d < stage.shapes[0].size(); ++d) {
      const int64_t extent = ir::as_const_int(stage.shapes[0][d]).value_or(kManyColumns);
      if (!stage.is_time(d)) columns *= std::clamp<int64_t>(extent, 1, kManyColumns);
      columns = std::min(columns, kManyColumns);
    }
    const ir::Expr& steps = stage.shapes[0][static_cast<size_t>(stage.time_dimension)];
    if (columns >= kManyColumns || ir::as_const_int(steps).value_or(kManySteps) < kManySteps)
      continue;
    notes.push_back(fmt::format(
        "the steps of {} are added up one after the other, by {}; with fast (fast=True, --fast) "
        "parts of them run at once, and sums are rounded in another order",
        stage.name, columns == 1 ? "a thread" : fmt::format("{} threads", columns)));
  }
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
  if (target.traits().has_threads) note_order_of_sums(graph, options, result.notes);
  add_lines(graph, plan, steps, result);
  return result;
}

}  // namespace kiln
