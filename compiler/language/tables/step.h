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
#include "compiler/language/tables/steps.def"
#undef STEP
};

/// What a row of the step table may use of a step: bits of StepRow::uses.
namespace step_fields {
constexpr uint8_t None = 0;
constexpr uint8_t Parts = 1;
constexpr uint8_t Tag = 2;
constexpr uint8_t At = 4;
constexpr uint8_t Output = 8;
constexpr uint8_t Readers = 16;
constexpr uint8_t Tags = 32;
constexpr uint8_t Layout = 64;
}  // namespace step_fields

/// What a step means for the axes that it names: bits of StepRow::effects. The table says more.
namespace step_effects {
constexpr uint8_t Plain = 0;
constexpr uint8_t Annotates = 1;
constexpr uint8_t Hints = 2;
constexpr uint8_t NoTime = 4;
constexpr uint8_t OfDimension = 8;
constexpr uint8_t OfExpression = 16;
}  // namespace step_effects

/// A row of the step table.
struct StepRow {
  StepKind kind;
  std::string_view spelling;
  int axes;
  int factors;
  uint8_t fields;          // of step_fields
  std::string_view value;  // the word for Step::value, empty when it is not used
  std::string_view stage;  // the name of the stage it defines, empty when there is none
  std::string_view defines;
  uint8_t effects;        // of step_effects
  std::string_view done;  // what it did to its axes, empty when messages never say so
  std::string_view doc;

  bool uses(uint8_t field) const { return (fields & field) != 0; }
  bool has(uint8_t effect) const { return (effects & effect) != 0; }
};

std::span<const StepRow> step_table();
const StepRow& row_of(StepKind kind);
std::optional<StepKind> find_step(std::string_view spelling);

/// The names that the names of what a step defines are made of.
struct StepOperands {
  std::vector<std::string> axes;
  // Of steps that define a stage:
  std::string stage;
  std::string tensor;
  std::string tag;
  std::vector<std::string> data;
  std::vector<std::string> reduce;
  uint32_t dimensions = 0;  // of the tensor
};

/// Names of the axes a step defines, in the order of their ids.
std::vector<std::string> defined_axis_names(StepKind kind, const StepOperands& operands);

/// The same for a step that defines no stage.
std::vector<std::string> defined_axis_names(StepKind kind, std::span<const std::string> axes);

/// "C.local": the name of the stage a step defines, before it is made unique.
std::string defined_stage_name(StepKind kind, const StepOperands& operands);

/// Whether the step uses up its axes: they are replaced by those it defines.
bool consumes_axes(StepKind kind);

/// Whether the step makes a stage of its own.
bool defines_stage(StepKind kind);

/// "global", "shared", ..: where memory may lie.
std::span<const std::string_view> memory_scopes();

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
  uint32_t output = 0;
  std::vector<uint32_t> readers;
  std::vector<std::string> tags;
  int64_t value = 0;
  uint32_t file = 0;
  uint32_t line = 0;  // 0: unknown
};

struct Schedule {
  std::vector<Step> steps;
};

}  // namespace kiln::language
