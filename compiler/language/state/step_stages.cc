#include "compiler/language/state/step_stages.h"

#include <algorithm>

#include <fmt/format.h>

namespace kiln::language {
namespace {

std::vector<std::string> names_of(const AxisTable& table, const std::vector<AxisId>& axes) {
  std::vector<std::string> names;
  for (const AxisId axis : axes)
    names.push_back(table.rows[axis].name);
  return names;
}

/// Whether the new stage has elements of a tensor that another stage read.
bool is_read(StepKind kind) { return kind == StepKind::CacheRead || kind == StepKind::CachePadded; }

bool contains(const std::vector<AxisId>& axes, AxisId axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

/// The reduction loops that stay reductions when one becomes a dimension.
std::vector<AxisId> other_reductions(const AxisTable& table, const Step& step) {
  std::vector<AxisId> axes = table.leaves_of(step.stage, AxisKind::Reduce);
  std::erase(axes, step.axes[0]);
  return axes;
}

std::vector<AxisId> axes_of_kind(const AxisTable& table, const Step& step, AxisKind kind) {
  std::vector<AxisId> axes = step.axes;
  std::erase_if(axes, [&](AxisId axis) { return table.rows[axis].kind != kind; });
  return axes;
}

StepOperands operands_of(const AxisTable& table, const Step& step) {
  const AxisTable::Stage& stage = table.stages[step.stage];
  StepOperands operands{.axes = names_of(table, step.axes), .stage = stage.name, .tag = step.tag};
  if (step.output < stage.tensors.size()) {
    operands.tensor = stage.tensors[step.output];
    operands.dimensions = stage.ranks[step.output];
  }
  if (step.kind == StepKind::Rfactor) {
    operands.data = names_of(table, stage.data);
    operands.reduce = names_of(table, other_reductions(table, step));
  } else if (step.kind == StepKind::ReductionStage) {
    operands.data = names_of(table, axes_of_kind(table, step, AxisKind::Data));
    operands.reduce = names_of(table, axes_of_kind(table, step, AxisKind::Reduce));
  } else {
    operands.data = names_of(table, table.leaves_of(step.stage, AxisKind::Data));
    operands.reduce = names_of(table, stage.reduce);
  }
  return operands;
}

/// Which dimension of the new stage is time.
int time_dimension_of(const AxisTable& table, const Step& step) {
  const AxisTable::Stage& source = table.stages[step.stage];
  const int time = source.time_dimension;
  if (time < 0 || is_read(step.kind)) return step.axes.empty() ? time : -1;
  if (step.kind == StepKind::Rfactor) return step.value <= time ? time + 1 : time;
  const std::vector<AxisId> dimensions = step.kind == StepKind::ReductionStage
                                             ? axes_of_kind(table, step, AxisKind::Data)
                                             : table.leaves_of(step.stage, AxisKind::Data);
  const auto place =
      std::find(dimensions.begin(), dimensions.end(), source.data[static_cast<size_t>(time)]);
  return place == dimensions.end() ? -1 : static_cast<int>(place - dimensions.begin());
}

/// Whether the reduction that becomes a stage is computed at each step of a scan.
bool is_at_time(const AxisTable& table, const Step& step) {
  return std::ranges::any_of(
      step.axes, [&](AxisId axis) { return contains(table.stages[step.stage].at_time, axis); });
}

/// The reduction is another stage's now.
void give_away_reduction(AxisTable& table, const Step& step, int position) {
  AxisTable::Stage& stage = table.stages[step.stage];
  for (const AxisId axis : axes_of_kind(table, step, AxisKind::Reduce)) {
    table.rows[axis].consumed_by = position;
    for (std::vector<AxisId>* list : {&stage.reduce, &stage.inner, &stage.leaves})
      std::erase(*list, axis);
  }
}

/// The axes of the copy that stand for those of the stage that it was made of.
std::vector<AxisId> axes_of_copy(const AxisTable::Stage& from, const AxisTable::Stage& copy,
                                 const std::vector<AxisId>& axes) {
  std::vector<AxisId> result;
  for (size_t i = 0; i < from.reduce.size() && i < copy.reduce.size(); ++i) {
    if (contains(axes, from.reduce[i])) result.push_back(copy.reduce[i]);
  }
  return result;
}

/// The stage becomes a copy: its own data axes are its loops, and all others are gone.
void become_copy(AxisTable& table, StageId id, int position) {
  AxisTable::Stage& stage = table.stages[id];
  for (AxisId axis = 0; axis < table.rows.size(); ++axis) {
    if (table.rows[axis].stage != id) continue;
    table.rows[axis].consumed_by = contains(stage.data, axis) ? -1 : position;
  }
  stage.is_reduction = false;
  stage.reduce.clear();
  stage.inner.clear();
  stage.leaves = stage.data;
}

/// The stage reduces over `axis` alone, where its reduction loops began.
void reduce_over(AxisTable& table, StageId id, AxisId axis, int position) {
  AxisTable::Stage& stage = table.stages[id];
  const std::vector<AxisId> before = table.leaves_of(id, AxisKind::Reduce);
  for (const AxisId leaf : before)
    table.rows[leaf].consumed_by = position;
  const auto first =
      std::find_first_of(stage.leaves.begin(), stage.leaves.end(), before.begin(), before.end());
  const auto place = first - stage.leaves.begin();
  std::erase_if(stage.leaves, [&](AxisId leaf) { return contains(before, leaf); });
  stage.leaves.insert(stage.leaves.begin() + place, axis);
  stage.reduce = {axis};
}

/// "C.local", or "C.local_1" when there is a stage or a tensor of that name.
std::string free_stage_name(AxisTable& table, const std::string& wanted) {
  std::string name = wanted;
  while (table.taken.contains(name))
    name = fmt::format("{}_{}", wanted, ++table.taken[wanted]);
  table.taken.emplace(name, 0);
  return name;
}

}  // namespace

void define_stage(AxisTable& table, const Step& step, int position) {
  const auto id = static_cast<StageId>(table.stages.size());
  const StepOperands operands = operands_of(table, step);
  const AxisTable::Stage source = table.stages[step.stage];
  const bool is_factored = step.kind == StepKind::Rfactor;
  const bool reads = is_read(step.kind);
  const bool is_inner = step.kind == StepKind::ReductionStage;
  const bool leaves_time = is_inner && !is_at_time(table, step);

  AxisTable::Stage made{
      .kind = AxisTable::Stage::Kind::Compute,
      .name = free_stage_name(table, defined_stage_name(step.kind, operands)),
      .tensors = {},
      .ranks = {},
      .defined_by = position,
      .cell_of = leaves_time ? -1 : source.cell_of,
      .time_dimension = leaves_time ? -1 : time_dimension_of(table, step),
      .is_reduction = !reads && (source.is_reduction || is_inner) && !operands.reduce.empty()};
  std::vector<std::string> names = defined_axis_names(step.kind, operands);
  const size_t data = reads ? names.size() : operands.data.size() + (is_factored ? 1 : 0);
  if (is_factored) {
    const auto place = std::clamp<int64_t>(step.value, 0, static_cast<int64_t>(data) - 1);
    const auto factor = names.begin() + static_cast<std::ptrdiff_t>(data) - 1;
    std::rotate(names.begin() + place, factor, factor + 1);
  }
  const size_t outputs = reads || is_inner ? 1 : source.tensors.size();
  for (size_t output = 0; output < outputs; ++output) {
    made.tensors.push_back(outputs == 1 ? made.name : fmt::format("{}.v{}", made.name, output));
    table.taken.emplace(made.tensors.back(), 0);
    made.ranks.push_back(static_cast<uint32_t>(data));
  }
  const auto first = static_cast<AxisId>(table.rows.size());
  const size_t own = names.size() - (is_factored ? 1 : 0);
  for (size_t i = 0; i < own; ++i) {
    const AxisKind kind = i < data ? AxisKind::Data : AxisKind::Reduce;
    (i < data ? made.data : made.reduce).push_back(first + static_cast<AxisId>(i));
    made.leaves.push_back(first + static_cast<AxisId>(i));
    table.rows.push_back({names[i], id, kind, position, -1});
  }
  if (step.kind == StepKind::CacheWrite) {
    made.inner = axes_of_copy(source, made, source.inner);
    made.at_time = axes_of_copy(source, made, source.at_time);
    become_copy(table, step.stage, position);
  }
  if (is_inner) give_away_reduction(table, step, position);
  if (is_factored) {
    reduce_over(table, step.stage, first + static_cast<AxisId>(own), position);
    table.rows.push_back({names[own], step.stage, AxisKind::Reduce, position, -1});
  }
  table.stages.push_back(std::move(made));
}

}  // namespace kiln::language
