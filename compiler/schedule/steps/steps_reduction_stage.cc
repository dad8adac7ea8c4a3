// A reduction taken out of an expression has a record from the start; the step makes it a stage
// that other steps can name. Its axes must be exactly those that it has, since the next steps count
// on what the step table says was made; a refusal shows the step as it must be written.
#include <algorithm>

#include <fmt/ranges.h>

#include "compiler/schedule/steps/new_stage.h"

namespace kiln::schedule {
namespace {

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorKind::InvalidArgument, "REDUCTION_STAGE", format, std::forward<Args>(args)...);
}

/// The step as it must be written for this reduction.
std::string right_step(const StepContext& context, const Stage& reduction) {
  std::string axes;
  for (const std::vector<AxisId>* list : {&reduction.stands_for, &reduction.reduce}) {
    for (const AxisId axis : *list)
      axes += fmt::format("{}.{}, ", context.record().name, context.graph.axes[axis].name);
  }
  return fmt::format("reduction_stage({}{})", axes, context.step.tag);
}

/// Which of several reductions over one axis is meant, the axis does not say.
void refuse_shared_axis(const StepContext& context, const Stage& reduction) {
  for (const AxisId axis : reduction.reduce) {
    if (!context.graph.axes[axis].is_shared) continue;
    refuse(
        "cannot make a stage of the reduction over {} inside {}: another reduction inside {} "
        "runs over the same axis {}; give each an axis of its own",
        names_of_axes(context.graph, reduction.reduce), context.record().name,
        context.record().name, context.graph.axes[axis].name);
  }
}

/// The dimensions of the new stage are data axes of the stage that the step names.
void refuse_other_axes(const StepContext& context, const Stage& reduction) {
  for (const AxisId id : reduction.stands_for) {
    const Axis& axis = context.graph.axes[id];
    if (axis.kind == AxisKind::Reduce) {
      refuse(
          "cannot make a stage of the reduction over {} inside {}: it uses {}, over which {} "
          "reduces too; write it as a stage of its own in the definition",
          names_of_axes(context.graph, reduction.reduce), context.record().name, axis.name,
          context.graph.kernel->names.stages[reduction.origin]);
    }
    if (axis.stage == context.stage) continue;
    const std::string& owner = context.graph[axis.stage].name;
    refuse(
        "cannot make a stage of the reduction over {} inside {}, whose layout is that of the "
        "loops of {}; take reduction_stage of {} before its cache_write",
        names_of_axes(context.graph, reduction.reduce), context.record().name, owner, owner);
  }
}

/// The reduction inside the stage's expression that has the last of the axes.
StageId find_reduction(const StepContext& context) {
  const StepContext& c = context;
  const StageId id = c.graph.axes[c.axes.back()].stage;
  KILN_CHECK(c.graph[id].part_of == c.stage);  // the state knows which are taken
  const Stage& reduction = c.graph[id];
  refuse_shared_axis(c, reduction);
  refuse_other_axes(c, reduction);
  if (reduction.types.size() > 1) {
    refuse(
        "cannot make a stage of the reduction over {} inside {}: it has {} values at once; write "
        "it as a stage of its own in the definition",
        names_of_axes(c.graph, reduction.reduce), c.record().name, reduction.types.size());
  }
  std::vector<AxisId> wanted = reduction.stands_for;
  wanted.insert(wanted.end(), reduction.reduce.begin(), reduction.reduce.end());
  if (c.axes != wanted) {
    refuse("the reduction over {} inside {} uses {}; write {}",
           names_of_axes(c.graph, reduction.reduce), c.record().name,
           reduction.stands_for.empty() ? "no other axis"
                                        : names_of_axes(c.graph, reduction.stands_for),
           right_step(c, reduction));
  }
  return id;
}

}  // namespace

template <>
void apply<StepKind::ReductionStage>(const StepContext& context) {
  StageGraph& graph = context.graph;
  const StageId id = find_reduction(context);
  Stage& stage = graph.stages[id];
  stage.name = context.made.name;
  stage.part_of.reset();
  stage.stands_for.clear();
  // Loops over the axes as they were reordered while they had no stage.
  std::erase_if(stage.loops.leaves,
                [&](AxisId leaf) { return graph.axes[leaf].kind == AxisKind::Reduce; });
  stage.loops.leaves.insert(stage.loops.leaves.end(), stage.reduce.begin(), stage.reduce.end());
  context.defined = stage.data;
  context.defined.insert(context.defined.end(), stage.reduce.begin(), stage.reduce.end());
  graph.stage_of_id.push_back(id);
}

}  // namespace kiln::schedule
