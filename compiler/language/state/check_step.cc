// What no step may do, whatever it is: name a placeholder, loops of other stages or loops that are
// gone, a loop twice, or take away a loop that a step before has said something of.
//   split(i, factor=4)  vectorize(i)  ->  "axis i was split into i.outer, i.inner"
// Rules of single steps are in check_attach.cc, check_caches.cc, check_hints.cc and others beside
// it.
#include "compiler/language/state/check_step.h"

#include <algorithm>
#include <limits>

#include <fmt/ranges.h>

#include "compiler/language/state/check_caches.h"
#include "compiler/language/state/check_hints.h"
#include "compiler/language/state/check_layout.h"
#include "compiler/language/state/check_reduction_stage.h"
#include "compiler/language/state/refuse.h"
#include "compiler/language/state/step_text.h"

namespace kiln::language {
namespace {

std::string at_line(const Step& step) {
  return step.line == 0 ? "" : fmt::format(" at line {}", step.line);
}

/// "split", "made parallel": what the step did to its axes.
std::string_view done_by(const Step& step) {
  const StepRow& row = row_of(step.kind);
  return row.done.empty() ? "used" : row.done;
}

/// What a step may not do to the axes that it names.
class CheckAxes {
 public:
  CheckAxes(const Step& step, const StateTables& tables)
      : step_(step), row_(row_of(step.kind)), tables_(tables) {}

  void all() const {
    for (size_t i = 0; i < step_.axes.size(); ++i) {
      one(step_.axes[i]);
      const auto end = step_.axes.begin() + static_cast<ptrdiff_t>(i);
      if (row_.has(step_effects::OfDimension)) continue;
      if (std::find(step_.axes.begin(), end, step_.axes[i]) != end)
        refuse("AXIS_TWICE", "{} names axis {} twice", row_.spelling, axis(step_.axes[i]));
    }
  }

  void place(const std::string& what) const {
    owner(step_.at_axis, step_.at_stage);
    const AxisRow& row = tables_.axes[step_.at_axis];
    if (row.consumed_by < 0) return;
    const Step& taken = *tables_.step_at(row.consumed_by);
    if (defines_stage(taken.kind)) refuse_moved(row, taken);
    refuse("CONSUMED_AXIS", "axis {} of {} was {}{}; {} at {}", row.name, stage(step_.at_stage),
           done_by(taken), at_line(taken), what, parts_of(row, " or "));
  }

  void time() const {
    const bool has_time = std::ranges::any_of(
        step_.axes, [&](AxisId id) { return tables_.axes[id].kind == AxisKind::Time; });
    if (has_time) refuse("SCAN_TIME", "the time axis of a scan is sequential");
  }

  /// Only one step says how a loop runs.
  void annotation() const {
    const Step* other = tables_.step_at(tables_.axes[step_.axes[0]].annotated_by);
    if (other == nullptr) return;
    const std::string with = other->tag.empty()                   ? ""
                             : other->kind == StepKind::Tensorize ? " with " + other->tag
                                                                  : " to " + other->tag;
    refuse("AXIS_ANNOTATED", "axis {} was {}{}{} already", axis(step_.axes[0]), done_by(*other),
           with, at_line(*other));
  }

  /// An axis that something hangs on cannot be taken away.
  void consumed() const {
    for (const AxisId id : step_.axes) {
      if (const Step* other = tables_.mark_of(id)) {
        refuse("AXIS_ANNOTATED", "axis {} was {}{}; {} it before that", axis(id), done_by(*other),
               at_line(*other), row_.spelling);
      }
      if (const auto attached = tables_.attached_at(id)) {
        refuse("AXIS_ATTACHED", "{} is computed at axis {}; {} it before compute_at",
               stage(*attached), axis(id), row_.spelling);
      }
    }
  }

  void settled(const std::vector<AxisId>& axes) const {
    const std::string& name = stage(step_.stage);
    for (const AxisId id : axes) {
      if (const Step* other = tables_.mark_of(id)) {
        refuse("AXIS_ANNOTATED", "axis {} of {} was {}{}; {} {} before that", axis(id), name,
               done_by(*other), at_line(*other), row_.spelling, name);
      }
      if (const auto attached = tables_.attached_at(id)) {
        refuse("AXIS_ATTACHED", "{} is computed at axis {} of {}; {} {} before compute_at",
               stage(*attached), axis(id), name, row_.spelling, name);
      }
    }
  }

 private:
  void one(AxisId id) const {
    const AxisRow& row = tables_.axes[id];
    const bool is_layout = row_.uses(step_fields::Layout) && !step_.readers.empty();
    owner(id, is_layout ? step_.readers[0] : step_.stage);
    // A dimension stays one, whatever became of its loop.
    const bool is_dimension = row_.has(step_effects::OfExpression) && row.kind == AxisKind::Data;
    if (!row_.has(step_effects::OfDimension) && !is_dimension) not_consumed(row);
    if (!is_dimension) not_time_of_cell(id);
  }

  void owner(AxisId id, StageId wanted) const {
    const AxisRow& row = tables_.axes[id];
    if (!row.is_used) refuse("FOREIGN_AXIS", "axis {} belongs to no stage", row.name);
    if (row.stage == wanted) return;
    refuse("FOREIGN_AXIS", "axis {} belongs to stage {}, not to {}", row.name, stage(row.stage),
           stage(wanted));
  }

  void not_consumed(const AxisRow& row) const {
    if (row.consumed_by < 0) return;
    const Step& taken = *tables_.step_at(row.consumed_by);
    if (defines_stage(taken.kind)) refuse_moved(row, taken);
    refuse("CONSUMED_AXIS", "axis {} was {} into {}{}", row.name, done_by(taken),
           parts_of(row, ", "), at_line(taken));
  }

  /// The step takes care of time in the stages of a cell: the loop is the scan's.
  void not_time_of_cell(AxisId id) const {
    const AxisRow& row = tables_.axes[id];
    const StageRow& owner = tables_.stages[row.stage];
    if (owner.kind != StageRow::Kind::Compute || owner.cell_of < 0 || owner.time_dimension < 0)
      return;
    if (owner.data[static_cast<size_t>(owner.time_dimension)] != id) return;
    const auto scan = static_cast<StageId>(owner.cell_of);
    refuse("SCAN_TIME", "axis {} of {} is the time of scan {}; schedule {}, the axis of the scan",
           row.name, stage(row.stage), stage(scan), axis(tables_.stages[scan].time));
  }

  /// What the step that consumed the axis made of it.
  std::string parts_of(const AxisRow& row, std::string_view between) const {
    std::string parts;
    for (const AxisRow& other : tables_.axes) {
      if (other.defined_by != row.consumed_by) continue;
      if (!parts.empty()) parts += between;
      parts += other.name;
    }
    return parts;
  }

  /// What became of an axis that is not of its stage any more, since the work is another stage's.
  [[noreturn]] void refuse_moved(const AxisRow& row, const Step& step) const {
    const auto made = std::ranges::find_if(
        tables_.stages, [&](const StageRow& stage) { return stage.defined_by == row.consumed_by; });
    if (step.kind == StepKind::Rfactor) {
      refuse("CONSUMED_AXIS", "{} now reduces what {} has; the reduction over {} is in {}",
             stage(row.stage), made->name, row.name, made->name);
    }
    if (step.kind == StepKind::ReductionStage) {
      refuse("CONSUMED_AXIS",
             "the reduction over {} inside {} is the stage {} now; name the axes of {}", row.name,
             stage(row.stage), made->name, made->name);
    }
    if (row.kind == AxisKind::Reduce) {
      refuse("CONSUMED_AXIS", "{} is now a copy; the reduction is in {}", stage(row.stage),
             made->name);
    }
    refuse("CONSUMED_AXIS",
           "{} is now a copy of {}, with its own axes as loops; {} gave the copy its layout",
           stage(row.stage), made->name, row.name);
  }

  const std::string& stage(StageId id) const { return tables_.stages[id].name; }
  const std::string& axis(AxisId id) const { return tables_.axes[id].name; }

  const Step& step_;
  const StepRow& row_;
  const StateTables& tables_;
};

void check_numbers(const Step& step, const StateTables& tables) {
  // The extents of a split round up to its factor, which must not pass the range of int64.
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const bool splits = consumes_axes(step.kind);
  const auto check = [&](std::string_view what, int64_t value) {
    if (value < 1) {
      refuse("SPLIT_FACTOR", "{}: the {} must be at least 1", text_of(step, tables), what);
    }
    if (splits && value > kMost) {
      refuse("SPLIT_FACTOR", "{}: the {} must be at most {}", text_of(step, tables), what, kMost);
    }
  };
  for (const int64_t factor : step.factors)
    check(step.factors.size() > 1 ? "factors" : "factor", factor);
  if (step.parts) check("parts", *step.parts);
}

/// A thread axis of the launch is one loop of a stage at most.
void check_thread(const Step& step, const StateTables& tables) {
  const auto tags = thread_tags();
  if (std::find(tags.begin(), tags.end(), step.tag) == tags.end()) {
    refuse("THREAD_AXIS", "unknown thread axis {}; known: {}", step.tag.substr(0, 64),
           fmt::join(tags, ", "));
  }
  if (step.tag == "vthread") return;
  for (const AxisId leaf : tables.stages[step.stage].loops.leaves) {
    const Step* bound = tables.step_at(tables.axes[leaf].annotated_by);
    if (bound == nullptr || bound->kind != StepKind::Bind || bound->tag != step.tag) continue;
    if (leaf == step.axes[0]) continue;
    refuse("THREAD_AXIS", "axis {} of {} is bound to {} already; bind {} to another thread axis",
           tables.axes[leaf].name, tables.name_of(step.stage), step.tag,
           tables.axes[step.axes[0]].name);
  }
}

/// What holds of one kind of step.
void check_kind(const Step& step, const StateTables& tables) {
  switch (step.kind) {
    case StepKind::Bind: return check_thread(step, tables);
    case StepKind::CacheRead:
    case StepKind::CachePadded: return check_cache_read(step, tables);
    case StepKind::CacheWrite: return check_cache_write(step, tables);
    case StepKind::Rfactor: return check_rfactor(step, tables);
    case StepKind::ReductionStage:
      return refuse_settled(step, tables, check_reduction_stage(step, tables));
    case StepKind::SetScope: return check_set_scope(step, tables);
    case StepKind::TransformLayout: return check_transform_layout(step, tables);
    case StepKind::ComputeAt: return check_compute_at(step, tables);
    case StepKind::ComputeInline: return check_inline(step, tables);
    default: return;
  }
}

}  // namespace

void check_step(const Step& step, const StateTables& tables) {
  const StepRow& row = row_of(step.kind);
  const StageRow& stage = tables.stages[step.stage];
  // Those that name a tensor read it.
  if (stage.kind == StageRow::Kind::Placeholder && !row.uses(step_fields::Output)) {
    refuse("STEP_STAGE", "{} is a placeholder; steps apply to what is computed", stage.name);
  }
  check_numbers(step, tables);
  const CheckAxes axes(step, tables);
  axes.all();
  check_kind(step, tables);
  if (row.has(step_effects::NoTime)) axes.time();
  if (row.has(step_effects::Annotates)) axes.annotation();
  if (consumes_axes(step.kind)) axes.consumed();
  check_hint(step, tables);
}

void check_place(const Step& step, const StateTables& tables, const std::string& what) {
  CheckAxes(step, tables).place(what);
}

void refuse_settled(const Step& step, const StateTables& tables, const std::vector<AxisId>& axes) {
  CheckAxes(step, tables).settled(axes);
}

}  // namespace kiln::language
