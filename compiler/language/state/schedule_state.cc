// Takes the steps of a schedule one after the other: refuses the next one or enters what it does.
//   loops of C: i, k;  split(C.k, factor=4)  ->  axes k.outer, k.inner; loops i, k.outer, k.inner
// What it may refuse is in check_step.cc, what a step that makes a stage leaves in step_stages.cc.
#include "compiler/language/state/schedule_state.h"

#include <algorithm>

#include "compiler/language/state/check_step.h"
#include "compiler/language/state/step_stages.h"
#include "compiler/language/tables/hints.h"
#include "runtime/core/error.h"

namespace kiln::language {
namespace {

AxisKind kind_of_all(const StateTables& tables, const std::vector<AxisId>& axes) {
  AxisKind kind = AxisKind::Data;
  for (const AxisId axis : axes) {
    const AxisKind part = tables.axes[axis].kind;
    if (part == AxisKind::Time || (part == AxisKind::Reduce && kind == AxisKind::Data)) kind = part;
  }
  return kind;
}

/// Axes in the place of those that the step takes.
std::vector<AxisId> define_axes(StateTables& tables, const Step& step, int position) {
  const std::vector<std::string> names = defined_axis_names(step.kind, tables.names_of(step.axes));
  // tile(x, y) defines x.outer, y.outer, x.inner, y.inner.
  const bool each_from_its_own = step.kind == StepKind::Tile;
  std::vector<AxisId> made;
  for (size_t i = 0; i < names.size(); ++i) {
    const AxisKind kind =
        each_from_its_own ? tables.axes[step.axes[i % 2]].kind : kind_of_all(tables, step.axes);
    made.push_back(static_cast<AxisId>(tables.axes.size()));
    tables.axes.push_back(
        {.name = names[i], .stage = step.stage, .kind = kind, .defined_by = position});
  }
  for (const AxisId axis : step.axes)
    tables.axes[axis].consumed_by = position;
  return made;
}

LoopChange change_of(const Step& step, const std::vector<AxisId>& made) {
  const auto by_factor = [&](size_t i, size_t inner) {
    return Split{step.axes[i], made[i], made[inner], step.factors[i], std::nullopt};
  };
  switch (step.kind) {
    case StepKind::Split:
      if (!step.parts) return {{by_factor(0, 1)}, {}};
      return {{Split{step.axes[0], made[0], made[1], std::nullopt, step.parts}}, {}};
    case StepKind::Tile: return {{by_factor(0, 2), by_factor(1, 3)}, made};
    case StepKind::Fuse: return {{Fuse{step.axes, made[0]}}, {}};
    case StepKind::Reorder: return {{}, step.axes};
    default: return {};
  }
}

/// What a step says of its stage or its axes, where it makes nothing.
void annotate(StateTables& tables, const Step& step, int position) {
  const StepRow& row = row_of(step.kind);
  if (row.has(step_effects::Annotates)) tables.axes[step.axes[0]].annotated_by = position;
  if (row.has(step_effects::Hints) && !is_of_tiles(step)) {
    const AxisId axis = row.uses(step_fields::At) ? step.at_axis : step.axes[0];
    tables.axes[axis].hints.push_back(position);
  }
  StageRow& stage = tables.stages[step.stage];
  using Kind = Attachment::Kind;
  if (step.kind == StepKind::ComputeAt) {
    stage.attach = {Kind::At, step.at_stage, step.at_axis, position};
  } else if (step.kind == StepKind::ComputeInline) {
    stage.attach = {Kind::Inline, 0, 0, position};
  } else if (step.kind == StepKind::ComputeRoot) {
    stage.attach = {Kind::Root, 0, 0, position};
  } else if (step.kind == StepKind::SetScope) {
    stage.scope_by = position;
  }
}

}  // namespace

std::vector<AxisId> StateTables::leaves_of(StageId stage, AxisKind kind) const {
  std::vector<AxisId> result;
  for (const AxisId axis : stages[stage].loops.leaves) {
    if (axes[axis].kind == kind) result.push_back(axis);
  }
  return result;
}

std::vector<std::string> StateTables::names_of(const std::vector<AxisId>& list) const {
  std::vector<std::string> names;
  for (const AxisId axis : list)
    names.push_back(axes[axis].name);
  return names;
}

bool StateTables::has_step(StepKind kind, StageId stage) const {
  return std::ranges::any_of(
      steps, [&](const Step& step) { return step.kind == kind && step.stage == stage; });
}

std::optional<StageId> StateTables::attached_at(AxisId axis) const {
  std::optional<StageId> found;
  for (StageId id = 0; id < stages.size(); ++id) {
    const Attachment& attach = stages[id].attach;
    if (attach.kind != Attachment::Kind::At || attach.axis != axis) continue;
    if (!found || attach.step > stages[*found].attach.step) found = id;
  }
  return found;
}

const Step* StateTables::mark_of(AxisId axis) const {
  const AxisRow& row = axes[axis];
  if (row.annotated_by >= 0) return step_at(row.annotated_by);
  return row.hints.empty() ? nullptr : step_at(row.hints[0]);
}

ScheduleState::ScheduleState(const Definition& definition, const SourceMap& names)
    : tables_(tables_of(definition, names)) {}

ScheduleState::ScheduleState(const Definition& definition, const SourceMap& names,
                             const Schedule& schedule)
    : ScheduleState(definition, names) {
  for (const Step& step : schedule.steps)
    apply(step);
}

void ScheduleState::check_form(const Step& step) const { language::check_form(step, tables_); }

void ScheduleState::apply(const Step& step) {
  check_form(step);
  check_step(step, tables_);
  const auto position = static_cast<int>(tables_.steps.size());
  last_change_ = {};
  if (defines_stage(step.kind)) {
    define_stage(tables_, step, position);
  } else {
    const std::vector<AxisId> made =
        consumes_axes(step.kind) ? define_axes(tables_, step, position) : std::vector<AxisId>();
    last_change_ = change_of(step, made);
    tables_.stages[step.stage].loops.apply(last_change_);
    annotate(tables_, step, position);
  }
  tables_.steps.push_back(step);
}

std::vector<AxisId> ScheduleState::defined_by(int position) const {
  std::vector<AxisId> made;
  for (AxisId id = 0; id < tables_.axes.size(); ++id) {
    if (tables_.axes[id].defined_by == position) made.push_back(id);
  }
  return made;
}

std::optional<StageId> ScheduleState::stage_defined_by(int position) const {
  for (StageId id = 0; id < tables_.stages.size(); ++id) {
    if (tables_.stages[id].defined_by == position) return id;
  }
  return std::nullopt;
}

std::vector<std::string> kernel_file_text(const Schedule& schedule, const Definition& definition,
                                          const SourceMap& names) {
  std::vector<std::string> steps;
  ScheduleState state(definition, names);
  for (const Step& step : schedule.steps) {
    steps.push_back(state.kernel_file_text(step));
    state.apply(step);
  }
  return steps;
}

}  // namespace kiln::language
