#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::language {

constexpr int kAnyNumber = -1;

enum class StepKind : uint8_t {
#define STEP(Name, ...) Name,
#include "compiler/language/steps.def"
#undef STEP
};

enum class StepUses : uint8_t { None, Parts, Tag, At };

/// A row of the step table.
struct StepRow {
  StepKind kind;
  std::string_view spelling;
  int axes;
  int factors;
  StepUses uses;
  std::string_view defines;
  std::string_view doc;
};

std::span<const StepRow> step_table();
const StepRow& row_of(StepKind kind);
std::optional<StepKind> find_step(std::string_view spelling);

/// Names of the axes a step defines, given the names of its axis operands.
std::vector<std::string> defined_axis_names(StepKind kind, std::span<const std::string> operands);

/// Whether the step uses up its axes: they are replaced by those it defines.
bool consumes_axes(StepKind kind);

/// What bind() may name: "blockIdx.x" .. "threadIdx.z", "vthread".
std::span<const std::string_view> thread_tags();

/// One step of a schedule. Fields the step table does not list for `kind` are empty.
struct Step {
  StepKind kind = StepKind::Split;
  uint32_t stage = 0;
  std::vector<uint32_t> axes;
  std::vector<int64_t> factors;
  std::optional<int64_t> parts;
  std::string tag;
  uint32_t at_stage = 0;
  uint32_t at_axis = 0;
  uint32_t file = 0;
  uint32_t line = 0;  // 0: unknown
};

struct Schedule {
  std::vector<Step> steps;
};

}  // namespace kiln::language
