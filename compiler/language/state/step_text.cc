// A step as text: its word of the step table and what it names.
//   {kind: Split, axes: {3}, factors: {32}}  ->  "split(k, factor=32)", in a file "split(C.k,
//   factor=32)"
#include "compiler/language/state/step_text.h"

#include <fmt/ranges.h>

namespace kiln::language {
namespace {

/// With `full`, each axis after its stage, except that of time, whose name has it.
std::string call_text(const Step& step, const StateTables& tables, bool full) {
  const auto text_of_axis = [&](AxisId axis, StageId stage, bool with_stage) {
    const AxisRow& axis_row = tables.axes[axis];
    if (!with_stage || (full && axis_row.kind == AxisKind::Time)) return axis_row.name;
    return fmt::format("{}.{}", tables.name_of(stage), axis_row.name);
  };
  const StepRow& row = row_of(step.kind);
  std::vector<std::string> arguments;
  if (row.axes == 0) {
    const StageRow& stage = tables.stages[step.stage];
    const bool is_tensor = row.uses(step_fields::Output) && step.output < stage.tensors.size();
    arguments.push_back(is_tensor ? stage.tensors[step.output] : stage.name);
  }
  const bool is_layout = row.uses(step_fields::Layout);
  for (const AxisId axis : step.axes) {
    if (!is_layout) arguments.push_back(text_of_axis(axis, tables.axes[axis].stage, full));
  }
  for (const int64_t factor : step.factors) {
    arguments.push_back(fmt::format("{}{}", row.factors == 1 ? "factor=" : "", factor));
  }
  if (step.parts) arguments.push_back(fmt::format("parts={}", *step.parts));
  if (!step.tag.empty()) arguments.push_back(step.tag);
  arguments.insert(arguments.end(), step.tags.begin(), step.tags.end());
  for (const StageId reader : step.readers)
    arguments.push_back(tables.name_of(reader));
  for (const AxisId axis : step.axes) {
    if (is_layout) arguments.push_back(text_of_axis(axis, tables.axes[axis].stage, true));
  }
  if (row.uses(step_fields::At)) {
    arguments.push_back(text_of_axis(step.at_axis, step.at_stage, true));
  }
  if (step.value != 0) arguments.push_back(fmt::format("{}={}", row.value, step.value));
  return fmt::format("{}({})", row.spelling, fmt::join(arguments, ", "));
}

}  // namespace

std::string text_of(const Step& step, const StateTables& tables) {
  return call_text(step, tables, false);
}

std::string kernel_file_text(const Step& step, const StateTables& tables) {
  return call_text(step, tables, true);
}

}  // namespace kiln::language
