// reduction_stage names a reduction inside an expression by the axes of its stage: those it uses,
// then those it reduces over, and a word for the new stage.
//   C[i, j] = A[i, j] / sum[k](A[i, k]),  reduction_stage(C.i, C.k, sum)  ->  a stage C.sum
#include "compiler/language/state/check_reduction_stage.h"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/core/error.h"

namespace kiln::language {
namespace {

bool contains(const std::vector<AxisId>& axes, AxisId axis) {
  return std::ranges::find(axes, axis) != axes.end();
}

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorKind::InvalidArgument, "REDUCTION_STAGE", format, std::forward<Args>(args)...);
}

/// The axes reduced over, which come last.
std::vector<AxisId> reduced_axes(const Step& step, const StateTables& tables) {
  const StageRow& stage = tables.stages[step.stage];
  if (stage.kind != StageRow::Kind::Compute) {
    refuse("reduction_stage takes a reduction inside the expression of a compute, but {} is a {}",
           stage.name, stage.kind == StageRow::Kind::Scan ? "scan" : "scatter");
  }
  std::vector<AxisId> reduced;
  for (const AxisId id : step.axes) {
    const AxisRow& row = tables.axes[id];
    if (!contains(stage.data, id) && !contains(stage.reduce, id)) {
      refuse("reduction_stage takes axes that the expression of {} uses, but {} was made by a step",
             stage.name, row.name);
    }
    if (row.kind == AxisKind::Reduce) {
      reduced.push_back(id);
    } else if (!reduced.empty()) {
      refuse(
          "reduction_stage takes the axes that a reduction uses before those that it reduces over: "
          "{} before {}",
          row.name, tables.axes[reduced[0]].name);
    }
  }
  return reduced;
}

void check_reduced(const StageRow& stage, const StateTables& tables,
                   const std::vector<AxisId>& reduced) {
  if (reduced.empty() && stage.inner.empty()) {
    refuse("{} has no reduction inside its expression that could become a stage", stage.name);
  }
  if (reduced.empty()) {
    refuse(
        "reduction_stage names no axis that a reduction inside the expression of {} runs over; "
        "such axes come last",
        stage.name);
  }
  for (const AxisId id : reduced) {
    if (contains(stage.inner, id)) continue;
    refuse("the reduction over {} is all that {} computes, so it is a stage of its own already",
           tables.axes[id].name, stage.name);
  }
}

bool is_letter(char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// What the new stage is called, after the name of its own stage and a dot.
void check_word(const Step& step, const StateTables& tables) {
  const std::string& stage = tables.name_of(step.stage);
  const bool is_word =
      !step.tag.empty() && is_letter(step.tag[0]) &&
      std::ranges::all_of(step.tag, [](char c) { return is_letter(c) || is_digit(c); });
  if (is_word) return;
  std::string axes;
  for (const AxisId id : step.axes)
    axes += fmt::format("{}.{}, ", stage, tables.axes[id].name);
  // The last axis, where the word is forgotten.
  if (step.tag.starts_with(stage + ".")) axes += step.tag + ", ";
  refuse(
      "reduction_stage ends with a word for the new stage, of letters, digits and _, as in "
      "reduction_stage({}sum)",
      axes);
}

}  // namespace

std::vector<AxisId> check_reduction_stage(const Step& step, const StateTables& tables) {
  const std::vector<AxisId> reduced = reduced_axes(step, tables);
  check_word(step, tables);
  check_reduced(tables.stages[step.stage], tables, reduced);
  return reduced;
}

}  // namespace kiln::language
