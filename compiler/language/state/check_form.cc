// A step has the fields that its row of the step table lists, no others, and ids that exist.
//   {name: "split", axes: {0}}  ->  refused: split takes either a factor or parts, but got neither
#include "compiler/language/state/check_step.h"
#include "compiler/language/state/refuse.h"

namespace kiln::language {
namespace {

void check_stage_id(const StepRow& row, uint32_t id, const StateTables& tables) {
  if (id < tables.stages.size()) return;
  refuse("MALFORMED", "{} refers to stage {}, but there are {}", row.spelling, id,
         tables.stages.size());
}

void check_axis_id(const StepRow& row, uint32_t id, const StateTables& tables) {
  if (id < tables.axes.size()) return;
  refuse("MALFORMED", "{} refers to axis {}, but there are {} at this step", row.spelling, id,
         tables.axes.size());
}

void check_ids(const StepRow& row, const Step& step, const StateTables& tables) {
  check_stage_id(row, step.stage, tables);
  for (const StageId reader : step.readers)
    check_stage_id(row, reader, tables);
  for (const AxisId axis : step.axes)
    check_axis_id(row, axis, tables);
  if (!row.uses(step_fields::At)) return;
  check_stage_id(row, step.at_stage, tables);
  check_axis_id(row, step.at_axis, tables);
}

void check_axes(const StepRow& row, const Step& step) {
  const auto count = static_cast<int>(step.axes.size());
  const int fewest = step.kind == StepKind::Fuse ? 2 : 1;
  if (row.uses(step_fields::Layout)) return;  // any axes, or none
  if (row.axes == kAnyNumber ? count >= fewest : count == row.axes) return;
  const int wanted = row.axes == kAnyNumber ? fewest : row.axes;
  refuse("STEP_FIELDS", "{} takes {} {}{}, but got {}", row.spelling, wanted,
         row.axes == kAnyNumber ? "or more " : "", wanted == 1 ? "axis" : "axes", count);
}

void check_factors(const StepRow& row, const Step& step) {
  const auto factors = static_cast<int>(step.factors.size());
  if (row.uses(step_fields::Parts)) {
    if (factors == 1 ? !step.parts : factors == 0 && step.parts) return;
    refuse("STEP_FIELDS", "{} takes either a factor or parts, but got {}", row.spelling,
           factors == 0   ? "neither"
           : factors == 1 ? "both"
                          : fmt::format("{} factors", factors));
  }
  const auto wanted = row.factors == kAnyNumber ? static_cast<int>(step.axes.size()) : row.factors;
  if (factors != wanted) {
    refuse("STEP_FIELDS", "{} takes {} factor{}, but got {}", row.spelling, wanted,
           wanted == 1 ? "" : "s", factors);
  }
  if (step.parts) refuse("STEP_FIELDS", "{} takes no parts", row.spelling);
}

}  // namespace

void check_form(const Step& step, const StateTables& tables) {
  const StepRow& row = row_of(step.kind);
  check_ids(row, step, tables);
  check_axes(row, step);
  check_factors(row, step);
  if (!row.uses(step_fields::Tag) && !step.tag.empty()) {
    refuse("STEP_FIELDS", "{} takes no thread axis", row.spelling);
  }
  if (!row.uses(step_fields::Tags) && !step.tags.empty()) {
    refuse("STEP_FIELDS", "{} takes no list of thread axes", row.spelling);
  }
  if (!row.uses(step_fields::Readers) && !step.readers.empty()) {
    refuse("STEP_FIELDS", "{} takes no readers", row.spelling);
  }
  if (row.uses(step_fields::Output)) {
    const StageRow& stage = tables.stages[step.stage];
    if (step.output >= stage.tensors.size()) {
      refuse("MALFORMED", "{} refers to output {} of {}, which has {}", row.spelling, step.output,
             stage.name, stage.tensors.size());
    }
  } else if (step.output != 0) {
    refuse("STEP_FIELDS", "{} takes no output", row.spelling);
  }
  if (row.value.empty() && step.value != 0) {
    refuse("STEP_FIELDS", "{} takes no further number", row.spelling);
  }
}

}  // namespace kiln::language
