// transform_layout: each element has a place of its own in the layout that the step names. An axis
// with a step stands for how often so many elements along the dimension have been passed.
//   transform_layout(B.i, B.j, B.i, 4, 1, 1)  ->  B[i, j] lies at [i // 4, j, i % 4]
// As the index maps of TVM's Stage.transform_layout, of which these are the ones without arithmetic
// between dimensions.
#include "compiler/language/state/check_layout.h"

#include <algorithm>

#include "compiler/language/state/check_hints.h"
#include "compiler/language/state/refuse.h"
#include "compiler/language/state/step_text.h"

namespace kiln::language {
namespace {

constexpr std::string_view kReason = "TRANSFORM_LAYOUT";
constexpr int64_t kLargestStep = int64_t{1} << 20;

/// The factors that a step names for a dimension, ascending.
std::vector<int64_t> layout_steps(const Step& step, AxisId axis) {
  std::vector<int64_t> steps;
  for (size_t i = 0; i < step.axes.size(); ++i) {
    if (step.axes[i] == axis) steps.push_back(step.factors[i]);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

/// The steps along a dimension from the smallest on: a number system in which each has a digit.
void check_steps(const Step& step, const StateTables& tables, AxisId axis) {
  const std::vector<int64_t> steps = layout_steps(step, axis);
  const std::string& name = tables.axes[axis].name;
  if (steps.empty()) {
    refuse(kReason, "{} leaves out the dimension {} of {}", text_of(step, tables), name,
           tables.name_of(step.stage));
  }
  if (steps[0] != 1) {
    refuse(kReason,
           "{} would lay {} neighbours along {} in one place; name {} once more with the factor 1",
           text_of(step, tables), steps[0], name, name);
  }
  if (steps.back() > kLargestStep) {
    refuse(kReason, "{}: the factors must be at most {}", text_of(step, tables), kLargestStep);
  }
  for (size_t i = 1; i < steps.size(); ++i) {
    if (steps[i] > steps[i - 1] && steps[i] % steps[i - 1] == 0) continue;
    refuse(kReason, "{}: of the factors {} and {} of {}, one must be a multiple of the other",
           text_of(step, tables), steps[i - 1], steps[i], name);
  }
}

}  // namespace

void check_transform_layout(const Step& step, const StateTables& tables) {
  refuse_foreign_memory(step, tables, kReason, "transform");
  const StageRow& stage = tables.stages[step.stage];
  for (const AxisId axis : step.axes)
    require_dimension(step, tables, kReason, axis);
  for (const AxisId axis : stage.data)
    check_steps(step, tables, axis);
  if (tables.has_step(StepKind::TransformLayout, step.stage)) {
    refuse(kReason, "{} has a layout already; name the whole layout in one step", stage.name);
  }
  if (tables.has_step(StepKind::RollingBuffer, step.stage)) {
    refuse(kReason,
           "{} has a step rolling_buffer already; leave out one of rolling_buffer and "
           "transform_layout",
           stage.name);
  }
  if (tables.has_step(StepKind::StorageAlign, step.stage) ||
      tables.has_step(StepKind::Prefetch, step.stage)) {
    refuse(kReason,
           "a step before says of the dimensions of {} how they lie or are fetched; transform its "
           "layout without storage_align and prefetch",
           stage.name);
  }
}

}  // namespace kiln::language
