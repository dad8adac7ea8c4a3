// The table steps.def as rows, and the names of what a step makes, which are patterns of the table.
//
//   split of C.i  ->  "{0}.outer {0}.inner"  ->  i.outer, i.inner
#include "compiler/language/tables/step.h"

#include <algorithm>
#include <array>

#include "runtime/core/error.h"

namespace kiln::language {
namespace {

using namespace step_effects;  // NOLINT: the words of the table
using namespace step_fields;   // NOLINT: likewise

constexpr auto kSteps = std::to_array<StepRow>({
#define STEP(Name, spelling, axes, factors, uses, value, stage, defines, effects, done, doc) \
  {StepKind::Name, spelling, axes, factors, uses, value, stage, defines, effects, done, doc},
#include "compiler/language/tables/steps.def"
#undef STEP
});

constexpr auto kThreadTags = std::to_array<std::string_view>({
    "blockIdx.x",
    "blockIdx.y",
    "blockIdx.z",
    "threadIdx.x",
    "threadIdx.y",
    "threadIdx.z",
    "vthread",
});

std::string joined(std::span<const std::string> names) {
  std::string text;
  for (const std::string& name : names) {
    if (!text.empty()) text += '.';
    text += name;
  }
  return text;
}

constexpr auto kMemoryScopes = std::to_array<std::string_view>({
    "global",
    "shared",
    "shared.dyn",
    "local",
    "warp",
    "wmma.matrix_a",
    "wmma.matrix_b",
    "wmma.accumulator",
});

/// What stands for each "{word}" of a pattern, one name a use of the pattern.
std::vector<std::string> values_of(std::string_view word, const StepOperands& operands) {
  if (word == "all") return {joined(operands.axes)};
  if (word == "stage") return {operands.stage};
  if (word == "tensor") return {operands.tensor};
  if (word == "tag") return {operands.tag};
  if (word == "data") return operands.data;
  if (word == "reduce") return operands.reduce;
  if (word == "dimensions") {
    std::vector<std::string> names = operands.axes;
    for (uint32_t i = 0; i < operands.dimensions && operands.axes.empty(); ++i)
      names.push_back(fmt::format("ax{}", i));
    return names;
  }
  const auto position = static_cast<size_t>(word[0] - '0');
  KILN_CHECK(position < operands.axes.size());
  return {operands.axes[position]};
}

/// "{0}.outer", "{all}.fused", "{stage}.{tag}" with each word replaced; a word for a list makes a
/// list.
std::vector<std::string> expand(std::string_view pattern, const StepOperands& operands) {
  const size_t open = pattern.find('{');
  if (open == std::string_view::npos) return {std::string(pattern)};
  const size_t close = pattern.find('}', open);
  KILN_CHECK(close != std::string_view::npos);
  std::vector<std::string> result;
  for (const std::string& value : values_of(pattern.substr(open + 1, close - open - 1), operands)) {
    for (const std::string& rest : expand(pattern.substr(close + 1), operands)) {
      result.push_back(fmt::format("{}{}{}", pattern.substr(0, open), value, rest));
    }
  }
  return result;
}

}  // namespace

std::span<const StepRow> step_table() { return kSteps; }
const StepRow& row_of(StepKind kind) { return kSteps[static_cast<size_t>(kind)]; }

std::optional<StepKind> find_step(std::string_view spelling) {
  for (const StepRow& row : kSteps) {
    if (row.spelling == spelling) return row.kind;
  }
  return std::nullopt;
}

std::span<const std::string_view> thread_tags() { return kThreadTags; }

std::span<const std::string_view> memory_scopes() { return kMemoryScopes; }

std::vector<std::string> defined_axis_names(StepKind kind, const StepOperands& operands) {
  std::vector<std::string> names;
  std::string_view rest = row_of(kind).defines;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(' '), rest.size());
    for (std::string& name : expand(rest.substr(0, end), operands))
      names.push_back(std::move(name));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return names;
}

std::vector<std::string> defined_axis_names(StepKind kind, std::span<const std::string> axes) {
  return defined_axis_names(kind, StepOperands{.axes = {axes.begin(), axes.end()}});
}

std::string defined_stage_name(StepKind kind, const StepOperands& operands) {
  return expand(row_of(kind).stage, operands)[0];
}

bool consumes_axes(StepKind kind) { return !row_of(kind).defines.empty() && !defines_stage(kind); }

bool defines_stage(StepKind kind) { return !row_of(kind).stage.empty(); }

}  // namespace kiln::language
