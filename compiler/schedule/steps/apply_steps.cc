// Takes the steps of a schedule into the graph: the state says whether a step may be taken and what
// it means by its ids; the graph has the same stages and axes with their expressions, and those
// that the compiler adds (reductions taken out of expressions, copies into the state of a scan).
//   split(C.k, factor=4), where the sum over k stands inside of C  ->  loops k.outer, k.inner of
//   C.sum
#include "compiler/schedule/steps/apply_steps.h"

#include <array>

#include "compiler/schedule/graph/reads.h"
#include "compiler/schedule/steps/inner_outputs.h"
#include "compiler/schedule/steps/new_stage.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {
namespace {

using language::Step;

using Apply = void (*)(const StepContext&);

/// In the order of StepKind.
constexpr std::array kApply = {
#define STEP(name, ...) Apply{apply<StepKind::name>},
#include "compiler/language/tables/steps.def"
#undef STEP
};

/// The stage whose loops the axes are: that of the step, or the reduction taken out of it.
StageId owner_of(const StageGraph& graph, const Step& step, const std::vector<AxisId>& axes) {
  if (axes.empty()) return step.stage;
  const StageId whole = step.kind == StepKind::CacheRead ? step.readers[0] : step.stage;
  const StageId owner = graph.axes[axes[0]].stage;
  for (const AxisId axis : axes) {
    if (graph.axes[axis].stage == owner) continue;
    fail(ErrorKind::InvalidArgument, "FOREIGN_AXIS",
         "{} and {} are not loops of one nest: the reduction over {} inside {} is computed before "
         "{}'s other loops",
         graph.axes[axes[0]].name, graph.axes[axis].name,
         graph.axes[graph.axes[axis].kind == AxisKind::Reduce ? axis : axes[0]].name,
         graph[whole].name, graph[whole].name);
  }
  KILN_CHECK(is_part_of(graph, owner, whole));  // the state refuses others
  return owner;
}

}  // namespace

std::string names_of_axes(const StageGraph& graph, const std::vector<AxisId>& axes) {
  std::string text;
  for (const AxisId axis : axes) {
    if (!text.empty()) text += ", ";
    text += graph.axes[axis].name;
  }
  return text;
}

std::string describe(const StageGraph& graph, const Step& step, const std::vector<AxisId>& axes) {
  std::string arguments = names_of_axes(graph, axes);
  const bool is_read = step.kind == StepKind::CacheRead;
  const bool is_of_tensor = language::defines_stage(step.kind) || step.kind == StepKind::Prefetch ||
                            step.kind == StepKind::ComputeAt ||
                            step.kind == StepKind::StorageSwizzle;
  if (is_of_tensor && (axes.empty() || is_read)) {
    arguments = graph.tensor_name({step.stage, step.output});
  }
  const auto add = [&](const std::string& text) {
    arguments += (arguments.empty() ? "" : ", ") + text;
  };
  const bool has_one = language::row_of(step.kind).factors == 1;
  for (const int64_t factor : step.factors)
    add(fmt::format("{}{}", has_one ? "factor=" : "", factor));
  if (step.parts) add(fmt::format("nparts={}", *step.parts));
  if (!step.tag.empty()) add(step.tag);
  if (step.kind == StepKind::ComputeAt) {
    add(fmt::format("{}.{}", graph[step.at_stage].name, graph.axes[step.at_axis].name));
  }
  if (step.kind == StepKind::Prefetch) add(graph.axes[step.at_axis].name);
  for (const std::string& tag : step.tags)
    add(tag);
  for (const uint32_t reader : step.readers)
    add(graph[reader].name);
  if (is_read && !axes.empty()) add(names_of_axes(graph, axes));
  return fmt::format("{}({})", language::row_of(step.kind).spelling, arguments);
}

namespace {

/// The step with the positions of the graph for its ids.
Step resolve(const StageGraph& graph, const Step& step) {
  const auto stage = [&](uint32_t id) {
    KILN_CHECK(id < graph.stage_of_id.size());
    return graph.stage_of_id[id];
  };
  const auto axis = [&](uint32_t id) {
    KILN_CHECK(id < graph.axis_of_id.size());
    return graph.axis_of_id[id];
  };
  Step resolved = step;
  resolved.stage = stage(step.stage);
  for (uint32_t& id : resolved.axes)
    id = axis(id);
  for (uint32_t& id : resolved.readers)
    id = stage(id);
  if (language::row_of(step.kind).uses(language::step_fields::At)) {
    resolved.at_stage = stage(step.at_stage);
    resolved.at_axis = axis(step.at_axis);
  }
  return resolved;
}

/// Takes the step into the state; what it makes, by the names there.
NewStage new_stage(StageGraph& graph, const Step& step, const Step& resolved) {
  NewStage made;
  made.readers = resolved.readers;
  for (const language::AxisId axis : graph.state.stage(step.stage).reduce)
    made.reduced.push_back(graph.axis_of_id[axis]);
  graph.state.apply(step);
  if (!language::defines_stage(step.kind)) return made;
  const language::StageRow& stage = graph.state.stages().back();
  made.name = stage.name;
  for (const language::AxisId axis : stage.data)
    made.data.push_back(graph.state.axis(axis).name);
  for (const language::AxisId axis : stage.reduce)
    made.reduce.push_back(graph.state.axis(axis).name);
  return made;
}

/// Stages of which a step says how their loops run; which stages there are says nothing of that,
/// nor what code made of tiles is like.
void mark_touched(StageGraph& graph, const Step& step, StageId owner) {
  const language::StepRow& row = language::row_of(step.kind);
  if (row.has(language::step_effects::OfExpression) || language::is_of_tiles(step)) return;
  // What is said of a loop beside the stage is said of the stage that has it.
  const bool is_of_reader =
      row.has(language::step_effects::Hints) && row.uses(language::step_fields::At);
  graph.stages[is_of_reader ? step.at_stage : step.stage].is_touched = true;
  if (!is_of_reader) graph.stages[owner].is_touched = true;
}

/// `step` names stages and axes by ids, `resolved` by positions.
void take(StageGraph& graph, const Step& step, const Step& resolved, int position) {
  const NewStage made = new_stage(graph, step, resolved);
  // It is about an expression: its axes, if any, are not loops of one nest.
  const bool names_expression =
      language::row_of(step.kind).has(language::step_effects::OfExpression);
  const StageId owner =
      names_expression ? resolved.stage : owner_of(graph, resolved, resolved.axes);
  mark_touched(graph, resolved, owner);
  const StageId about = step.kind == StepKind::CacheRead ? resolved.stage : owner;
  std::vector<AxisId> defined;
  const auto stages = static_cast<StageId>(graph.stages.size());
  kApply[static_cast<size_t>(step.kind)](
      StepContext{graph, resolved, position, about, resolved.axes, made, defined});
  if (graph.stages.size() > stages) graph.stage_of_id.push_back(stages);
  graph.axis_of_id.insert(graph.axis_of_id.end(), defined.begin(), defined.end());
  KILN_CHECK(graph.stage_of_id.size() == graph.state.stages().size());
  KILN_CHECK(graph.axis_of_id.size() == graph.state.axes().size());
}

}  // namespace

void apply_steps(StageGraph& graph, const language::Schedule& schedule) {
  for (const Step& step : schedule.steps) {
    const auto position = static_cast<int>(graph.state.steps().size());
    const Step resolved = resolve(graph, step);
    at_step(graph, resolved, position, describe(graph, resolved, resolved.axes),
            [&] { take(graph, step, resolved, position); });
  }
  keep_inlined_outputs(graph);
  refuse_large_inlining(graph);
  check_attachments(graph, schedule);
  check_hints(graph, schedule);
  check_scatters(graph, schedule);
}

}  // namespace kiln::schedule
