#include "compiler/language/step.h"

#include <algorithm>
#include <array>

#include "runtime/core/error.h"

namespace kiln::language {
namespace {

constexpr auto kSteps = std::to_array<StepRow>({
#define STEP(Name, spelling, axes, factors, uses, defines, doc) \
  {StepKind::Name, spelling, axes, factors, StepUses::uses, defines, doc},
#include "compiler/language/steps.def"
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

/// One word of a row's `defines`: "{0}.outer", "{all}.fused".
std::string expand(std::string_view pattern, std::span<const std::string> operands) {
  const size_t close = pattern.find('}');
  KILN_CHECK(pattern.starts_with('{') && close != std::string_view::npos);
  const std::string_view placeholder = pattern.substr(1, close - 1);
  const std::string_view suffix = pattern.substr(close + 1);
  if (placeholder == "all") return joined(operands) + std::string(suffix);
  const auto position = static_cast<size_t>(placeholder[0] - '0');
  KILN_CHECK(position < operands.size());
  return operands[position] + std::string(suffix);
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

std::vector<std::string> defined_axis_names(StepKind kind, std::span<const std::string> operands) {
  std::vector<std::string> names;
  std::string_view rest = row_of(kind).defines;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(' '), rest.size());
    names.push_back(expand(rest.substr(0, end), operands));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return names;
}

bool consumes_axes(StepKind kind) { return !row_of(kind).defines.empty(); }

}  // namespace kiln::language
