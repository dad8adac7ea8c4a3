// The stage that a step makes: its name, its axes by the step table, and what they leave of the
// stage that the step was about.
//   cache_write(C, local) of C[i] = sum[k](..), loops i.outer, i.inner, k
//   -> C.local with the axes i.outer.c, i.inner.c, k; C is a copy of it with the loop i
#include "compiler/language/state/step_stages.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

namespace kiln::language {
namespace {

/// Whether the new stage has elements of a tensor that another stage read.
bool is_read(StepKind kind) { return kind == StepKind::CacheRead || kind == StepKind::CachePadded; }

bool contains(const std::vector<AxisId>& axes, AxisId axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

/// The reduction loops that stay reductions when one becomes a dimension.
std::vector<AxisId> other_reductions(const StateTables& tables, const Step& step) {
  std::vector<AxisId> axes = tables.leaves_of(step.stage, AxisKind::Reduce);
  std::erase(axes, step.axes[0]);
  return axes;
}

std::vector<AxisId> axes_of_kind(const StateTables& tables, const Step& step, AxisKind kind) {
  std::vector<AxisId> axes = step.axes;
  std::erase_if(axes, [&](AxisId axis) { return tables.axes[axis].kind != kind; });
  return axes;
}

StepOperands operands_of(const StateTables& tables, const Step& step) {
  const StageRow& stage = tables.stages[step.stage];
  StepOperands operands{.axes = tables.names_of(step.axes), .stage = stage.name, .tag = step.tag};
  if (step.output < stage.tensors.size()) {
    operands.tensor = stage.tensors[step.output];
    operands.dimensions = stage.ranks[step.output];
  }
  if (step.kind == StepKind::Rfactor) {
    operands.data = tables.names_of(stage.data);
    operands.reduce = tables.names_of(other_reductions(tables, step));
  } else if (step.kind == StepKind::ReductionStage) {
    operands.data = tables.names_of(axes_of_kind(tables, step, AxisKind::Data));
    operands.reduce = tables.names_of(axes_of_kind(tables, step, AxisKind::Reduce));
  } else {
    operands.data = tables.names_of(tables.leaves_of(step.stage, AxisKind::Data));
    operands.reduce = tables.names_of(stage.reduce);
  }
  return operands;
}

/// Which dimension of the new stage is time.
int time_dimension_of(const StateTables& tables, const Step& step) {
  const StageRow& source = tables.stages[step.stage];
  const int time = source.time_dimension;
  if (time < 0 || is_read(step.kind)) return step.axes.empty() ? time : -1;
  if (step.kind == StepKind::Rfactor) return step.value <= time ? time + 1 : time;
  const std::vector<AxisId> dimensions = step.kind == StepKind::ReductionStage
                                             ? axes_of_kind(tables, step, AxisKind::Data)
                                             : tables.leaves_of(step.stage, AxisKind::Data);
  const auto place =
      std::find(dimensions.begin(), dimensions.end(), source.data[static_cast<size_t>(time)]);
  return place == dimensions.end() ? -1 : static_cast<int>(place - dimensions.begin());
}

/// Whether the reduction that becomes a stage is computed at each step of a scan.
bool is_at_time(const StateTables& tables, const Step& step) {
  return std::ranges::any_of(
      step.axes, [&](AxisId axis) { return contains(tables.stages[step.stage].at_time, axis); });
}

/// The reduction is another stage's now.
void give_away_reduction(StateTables& tables, const Step& step, int position) {
  StageRow& stage = tables.stages[step.stage];
  for (const AxisId axis : axes_of_kind(tables, step, AxisKind::Reduce)) {
    tables.axes[axis].consumed_by = position;
    for (std::vector<AxisId>* list : {&stage.reduce, &stage.inner, &stage.loops.leaves})
      std::erase(*list, axis);
  }
}

/// The axes of the copy that stand for those of the stage that it was made of.
std::vector<AxisId> axes_of_copy(const StageRow& from, const StageRow& copy,
                                 const std::vector<AxisId>& axes) {
  std::vector<AxisId> result;
  for (size_t i = 0; i < from.reduce.size() && i < copy.reduce.size(); ++i) {
    if (contains(axes, from.reduce[i])) result.push_back(copy.reduce[i]);
  }
  return result;
}

/// The stage becomes a copy: its own data axes are its loops, and all others are gone.
void become_copy(StateTables& tables, StageId id, int position) {
  StageRow& stage = tables.stages[id];
  for (AxisId axis = 0; axis < tables.axes.size(); ++axis) {
    if (tables.axes[axis].stage != id) continue;
    tables.axes[axis].consumed_by = contains(stage.data, axis) ? -1 : position;
  }
  stage.is_reduction = false;
  stage.reduce.clear();
  stage.inner.clear();
  stage.loops.start_with(stage.data);
}

/// The stage reduces over `axis` alone, where its reduction loops began.
void reduce_over(StateTables& tables, StageId id, AxisId axis, int position) {
  StageRow& stage = tables.stages[id];
  const std::vector<AxisId> before = tables.leaves_of(id, AxisKind::Reduce);
  for (const AxisId leaf : before)
    tables.axes[leaf].consumed_by = position;
  std::vector<AxisId>& leaves = stage.loops.leaves;
  const auto first = std::find_first_of(leaves.begin(), leaves.end(), before.begin(), before.end());
  const auto place = first - leaves.begin();
  std::erase_if(leaves, [&](AxisId leaf) { return contains(before, leaf); });
  leaves.insert(leaves.begin() + place, axis);
  std::erase_if(stage.loops.relations, [&](const Relation& relation) {
    return tables.axes[made_of(relation)].kind == AxisKind::Reduce;
  });
  stage.reduce = {axis};
}

/// "C.local", or "C.local_1" when there is a stage or a tensor of that name.
std::string free_stage_name(StateTables& tables, const std::string& wanted) {
  std::string name = wanted;
  while (tables.taken.contains(name))
    name = fmt::format("{}_{}", wanted, ++tables.taken[wanted]);
  tables.taken.emplace(name, 0);
  return name;
}

/// Names of the axes in the order of their ids; of partial results the factored one stands where
/// the step says.
std::vector<std::string> names_of_axes(const Step& step, const StepOperands& operands,
                                       size_t data) {
  std::vector<std::string> names = defined_axis_names(step.kind, operands);
  if (step.kind != StepKind::Rfactor) return names;
  const auto place = std::clamp<int64_t>(step.value, 0, static_cast<int64_t>(data) - 1);
  const auto factor = names.begin() + static_cast<std::ptrdiff_t>(data) - 1;
  std::rotate(names.begin() + place, factor, factor + 1);
  return names;
}

void add_outputs(StateTables& tables, StageRow& made, size_t outputs, size_t rank) {
  for (size_t output = 0; output < outputs; ++output) {
    made.tensors.push_back(outputs == 1 ? made.name : fmt::format("{}.v{}", made.name, output));
    tables.taken.emplace(made.tensors.back(), 0);
    made.ranks.push_back(static_cast<uint32_t>(rank));
  }
}

/// Axes of the stage that comes next; the first `data` are no reductions.
void add_axes(StateTables& tables, StageRow& made, std::span<const std::string> names,
              size_t data) {
  for (size_t i = 0; i < names.size(); ++i) {
    const auto id = static_cast<AxisId>(tables.axes.size());
    const AxisKind kind = i < data ? AxisKind::Data : AxisKind::Reduce;
    (i < data ? made.data : made.reduce).push_back(id);
    made.loops.leaves.push_back(id);
    tables.axes.push_back({.name = names[i],
                           .stage = static_cast<StageId>(tables.stages.size()),
                           .kind = kind,
                           .defined_by = made.defined_by});
  }
}

/// What the step leaves of the stage that it was about; `made` is not in the tables yet.
void change_source(StateTables& tables, const Step& step, StageRow& made,
                   const std::string& last_name) {
  const int position = made.defined_by;
  if (step.kind == StepKind::CacheWrite) {
    const StageRow& source = tables.stages[step.stage];
    made.inner = axes_of_copy(source, made, source.inner);
    made.at_time = axes_of_copy(source, made, source.at_time);
    become_copy(tables, step.stage, position);
  } else if (step.kind == StepKind::ReductionStage) {
    give_away_reduction(tables, step, position);
  } else if (step.kind == StepKind::Rfactor) {
    reduce_over(tables, step.stage, static_cast<AxisId>(tables.axes.size()), position);
    tables.axes.push_back(
        {.name = last_name, .stage = step.stage, .kind = AxisKind::Reduce, .defined_by = position});
  }
}

}  // namespace

void define_stage(StateTables& tables, const Step& step, int position) {
  const StepOperands operands = operands_of(tables, step);
  const StageRow& source = tables.stages[step.stage];
  const bool reads = is_read(step.kind);
  const bool is_inner = step.kind == StepKind::ReductionStage;
  const bool leaves_time = is_inner && !is_at_time(tables, step);

  StageRow made{
      .kind = StageRow::Kind::Compute,
      .name = free_stage_name(tables, defined_stage_name(step.kind, operands)),
      .tensors = {},
      .ranks = {},
      .defined_by = position,
      .cell_of = leaves_time ? -1 : source.cell_of,
      .time_dimension = leaves_time ? -1 : time_dimension_of(tables, step),
      .is_reduction = !reads && (source.is_reduction || is_inner) && !operands.reduce.empty()};
  const bool is_factored = step.kind == StepKind::Rfactor;
  const size_t data = reads ? defined_axis_names(step.kind, operands).size()
                            : operands.data.size() + (is_factored ? 1 : 0);
  const std::vector<std::string> names = names_of_axes(step, operands, data);
  add_outputs(tables, made, reads || is_inner ? 1 : source.tensors.size(), data);
  // The last axis of an rfactor is that of the stage that reduces the partial results.
  add_axes(tables, made, std::span(names).first(names.size() - (is_factored ? 1 : 0)), data);
  change_source(tables, step, made, is_factored ? names.back() : "");
  if (step.kind == StepKind::CacheRead || step.kind == StepKind::CacheWrite)
    made.scope_by = position;
  tables.stages.push_back(std::move(made));
}

}  // namespace kiln::language
