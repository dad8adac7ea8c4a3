// Draws the step reduction_stage: for a reduction inside a stage's expression, the axes of the
// stage that it uses, then its own.
#include <algorithm>

#include "tests/support/schedule_drawer.h"

namespace kiln::testing {
namespace {

using language::AxisId;
using language::Definition;
using language::ExprId;
using language::Reduction;
using language::StageId;
using language::Step;
using language::StepKind;

/// What stands in an expression: axes, stages that it reads, reductions.
struct Contents {
  std::set<AxisId> axes;
  std::set<StageId> reads;
  std::vector<const Reduction*> reductions;
};

void collect(const Definition& definition, ExprId id, Contents& contents) {
  const auto& node = definition.expressions[id].node;
  const auto all = [&](const std::vector<ExprId>& list) {
    for (const ExprId expr : list)
      collect(definition, expr, contents);
  };
  if (const auto* use = std::get_if<language::AxisUse>(&node)) contents.axes.insert(use->axis);
  if (const auto* operation = std::get_if<language::Operation>(&node)) all(operation->operands);
  if (const auto* cast = std::get_if<language::CastTo>(&node)) all({cast->operand});
  if (const auto* read = std::get_if<language::Read>(&node)) {
    contents.reads.insert(read->tensor.stage);
    all(read->indices);
  }
  if (const auto* reduction = std::get_if<Reduction>(&node)) {
    contents.reductions.push_back(reduction);
    for (const AxisId axis : reduction->axes)
      all({definition.axes[axis].minimum, definition.axes[axis].extent});
    all(language::parts_of(*reduction));
  }
}

Contents contents_of(const Definition& definition, const Reduction& reduction) {
  Contents contents;
  for (const AxisId axis : reduction.axes) {
    collect(definition, definition.axes[axis].minimum, contents);
    collect(definition, definition.axes[axis].extent, contents);
  }
  for (const ExprId part : language::parts_of(reduction))
    collect(definition, part, contents);
  return contents;
}

/// Whether all of its axes are loops that nothing is said of.
bool is_free(const DrawnStage& stage, const Reduction& reduction) {
  return std::ranges::all_of(reduction.axes, [&](AxisId axis) {
    return std::ranges::any_of(stage.leaves,
                               [&](const Leaf& leaf) { return leaf.axis == axis && !leaf.taken; });
  });
}

/// The reductions inside of the stage's expressions that are not stages yet.
std::vector<const Reduction*> inner_reductions(const Definition& definition,
                                               const DrawnStage& stage) {
  if (stage.stage >= definition.stages.size()) return {};
  const auto* compute = std::get_if<language::Compute>(&definition.stages[stage.stage]);
  if (compute == nullptr) return {};
  const Reduction* whole = definition.whole_reduction(*compute);
  Contents contents;
  for (const ExprId body : compute->bodies)
    collect(definition, body, contents);
  std::erase_if(contents.reductions, [&](const Reduction* reduction) {
    return (whole != nullptr && reduction->axes == whole->axes) || !is_free(stage, *reduction);
  });
  return contents.reductions;
}

}  // namespace

template <>
void draw<StepKind::ReductionStage>(ScheduleDrawer& drawer, DrawnStage& stage) {
  const Definition& definition = drawer.definition;
  const std::vector<const Reduction*> choices = inner_reductions(definition, stage);
  if (choices.empty()) return;
  const Reduction& reduction = *drawer.random.pick(choices);
  const StageId source = stage.stage;
  const Contents contents = contents_of(definition, reduction);
  Step step{.kind = StepKind::ReductionStage, .stage = source, .tag = "part"};
  const auto& compute = std::get<language::Compute>(definition.stages[source]);
  for (const AxisId axis : compute.axes) {
    if (contents.axes.contains(axis)) step.axes.push_back(axis);
  }
  step.axes.insert(step.axes.end(), reduction.axes.begin(), reduction.axes.end());
  std::erase_if(stage.leaves, [&](const Leaf& leaf) {
    return std::ranges::find(reduction.axes, leaf.axis) != reduction.axes.end();
  });
  // `stage` does not outlive the next line, which adds a stage.
  const StageId made = add_stage(drawer, step);
  DrawnStage& added = *drawer.find(made);
  const AxisId first = drawer.new_axes(0) - static_cast<AxisId>(step.axes.size());
  for (Leaf& leaf : added.leaves)
    leaf.extent = drawer.constant_extent(step.axes[leaf.axis - first]);
  drawer.give_part(source, made, contents.reads);
}

}  // namespace kiln::testing
