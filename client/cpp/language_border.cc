// Kernels cross as wire messages: they are decoded and thereby checked, the language works on them,
// and the answer is text or messages again. An error is thrown anew as the client's class.
#include "client/cpp/language_border.h"

#include <utility>

#include "client/cpp/error_border.h"
#include "compiler/language/describe.h"
#include "compiler/language/evaluate/evaluate.h"
#include "compiler/language/parts.h"
#include "compiler/language/state/schedule_state.h"
#include "compiler/language/tables/operator.h"
#include "compiler/language/tables/step.h"
#include "compiler/language/text/text.h"
#include "compiler/language/wire/decode.h"
#include "runtime/core/dtype.h"
#include "runtime/core/error.h"

namespace kiln::border {
namespace {

/// Runs `body`; an error of the language leaves it as the client's.
template <typename Body>
decltype(auto) translate(Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const Error& error) {
    throw_as_client_error({.kind = static_cast<int>(error.kind()),
                           .reason = error.reason(),
                           .message = error.message(),
                           .notes = error.notes(),
                           .file = error.location().file,
                           .line = error.location().line});
  }
}

DType to_dtype(int type) { return static_cast<DType>(type); }

language::Operator known_operator(std::string_view spelling) {
  return translate([&] {
    const std::optional<language::Operator> op = language::find_operator(spelling);
    KILN_CHECK(op.has_value());
    return *op;
  });
}

Operands operands_of(const language::OperatorRow& row) {
  switch (row.type_rule) {
    case language::TypeRule::Same: return Operands::Number;
    case language::TypeRule::SameInt:
    case language::TypeRule::SameBits:
    case language::TypeRule::Compare: return Operands::Same;
    // A division of integers has two meanings; the other float functions have one.
    case language::TypeRule::SameFloat:
      return row.op == language::Operator::Div ? Operands::Same : Operands::Float;
    case language::TypeRule::Choose: return Operands::Choose;
    case language::TypeRule::Bits:
    case language::TypeRule::FloatTest: return Operands::Float;
    case language::TypeRule::Logic:
    case language::TypeRule::FromBits:
    case language::TypeRule::IntToInt: return Operands::AsTheyAre;
  }
  return Operands::AsTheyAre;
}

language::Kernel decoded(const WireKernel& kernel) {
  return language::decode(kernel.definition, kernel.names);
}

}  // namespace

std::string_view dtype_name(int type) {
  const std::optional<DType> known = dtype_from_number(type);
  return known ? name_of(*known) : std::string_view();
}

int find_dtype(std::string_view name) {
  const std::optional<DType> known = kiln::find_dtype(name);
  return known ? static_cast<int>(*known) : 0;
}

int dtype_size(int type) { return size_of(to_dtype(type)); }
bool is_float(int type) { return kiln::is_float(to_dtype(type)); }
bool is_signed_int(int type) { return kiln::is_signed_int(to_dtype(type)); }
bool is_int(int type) { return kiln::is_int(to_dtype(type)); }

OperatorUse find_operator(std::string_view spelling) {
  const language::OperatorRow& row = language::row_of(known_operator(spelling));
  return {row.spelling, operands_of(row)};
}

int result_type(std::string_view spelling, std::span<const int> operands) {
  std::vector<DType> types;
  for (const int type : operands)
    types.push_back(to_dtype(type));
  return translate(
      [&] { return static_cast<int>(language::result_type(known_operator(spelling), types)); });
}

bool is_logical_combiner(std::string_view spelling) {
  const std::optional<language::Combiner> combiner = language::find_combiner(spelling);
  return combiner &&
         language::row_of(language::row_of(*combiner).op).type_rule == language::TypeRule::Logic;
}

std::vector<std::string> defined_axis_names(std::string_view step,
                                            std::span<const std::string> operands) {
  return translate([&] {
    const std::optional<language::StepKind> kind = language::find_step(step);
    KILN_CHECK(kind.has_value());
    return language::defined_axis_names(*kind, operands);
  });
}

std::vector<WireParameter> parameters_of(const WireKernel& kernel) {
  return translate([&] {
    const language::Kernel checked = decoded(kernel);
    std::vector<WireParameter> parameters;
    for (const language::TensorId id : checked.definition.parameters) {
      WireParameter parameter{.name = checked.names.tensor_name(checked.definition, id),
                              .type = static_cast<int>(checked.definition.type_of(id)),
                              .output = checked.definition.is_output(id)};
      for (const language::ExprId size : checked.definition.shape_of(id)) {
        parameter.shape.push_back(language::text_of(checked.definition, checked.names, size));
      }
      parameters.push_back(std::move(parameter));
    }
    return parameters;
  });
}

std::vector<WirePart> parts_of(const WireKernel& kernel, std::span<const std::int64_t> sizes) {
  return translate([&] {
    const language::Kernel checked = decoded(kernel);
    std::vector<WirePart> parts;
    for (const language::Part& part : language::parts_of(checked.definition, checked.names)) {
      const language::Work work = language::work_of(checked.definition, part, sizes);
      const language::Kernel alone = language::kernel_of(checked, part);
      parts.push_back({.name = part.name,
                       .kernel = {.definition = language::encode(alone.definition),
                                  .names = language::encode(alone.names),
                                  .schedules = {}},
                       .operations = work.operations,
                       .bytes_read = work.bytes_read,
                       .bytes_written = work.bytes_written});
    }
    return parts;
  });
}

std::vector<std::vector<std::int64_t>> shapes_of(const WireKernel& kernel,
                                                 std::span<const std::int64_t> sizes) {
  return translate([&] {
    const language::Kernel checked = decoded(kernel);
    std::vector<std::vector<std::int64_t>> shapes;
    for (const language::TensorId id : checked.definition.parameters) {
      shapes.emplace_back();
      for (const language::ExprId size : checked.definition.shape_of(id))
        shapes.back().push_back(language::evaluate_size(checked.definition, size, sizes));
    }
    return shapes;
  });
}

bool defines_stage(std::string_view step) {
  const std::optional<language::StepKind> kind = language::find_step(step);
  return kind && language::defines_stage(*kind);
}

bool is_of_dimensions(std::string_view step) {
  const std::optional<language::StepKind> kind = language::find_step(step);
  return kind && language::row_of(*kind).has(language::step_effects::OfDimension);
}

std::string_view done_by(std::string_view step) {
  const std::optional<language::StepKind> kind = language::find_step(step);
  return kind ? language::row_of(*kind).done : "";
}

WireStage new_stage(const WireKernel& kernel) {
  return translate([&] {
    const language::Kernel checked = decoded(kernel);
    const language::Schedule schedule =
        language::decode_schedule(kernel.schedules.at(0).second, checked);
    const language::ScheduleState state(checked.definition, checked.names, schedule);
    const auto id = static_cast<language::StageId>(state.stages().size() - 1);
    const language::StageRow& stage = state.stages().back();
    WireStage made{.name = stage.name, .axes = {}, .data = stage.data.size(), .reduced = {}};
    for (const auto* axes : {&stage.data, &stage.reduce}) {
      for (const language::AxisId axis : *axes)
        made.axes.push_back(state.axis(axis).name);
    }
    if (state.axes().back().stage != id) made.reduced = state.axes().back().name;
    return made;
  });
}

std::vector<WireKernel> parse_text(std::string_view text, const std::string& file_name) {
  return translate([&] {
    std::vector<WireKernel> kernels;
    for (const language::TextKernel& parsed : language::parse_text(text, file_name)) {
      WireKernel kernel{.definition = language::encode(parsed.kernel.definition),
                        .names = language::encode(parsed.kernel.names)};
      for (const auto& [name, schedule] : parsed.schedules) {
        kernel.schedules.emplace_back(name, language::encode(schedule));
      }
      kernels.push_back(std::move(kernel));
    }
    return kernels;
  });
}

std::vector<v1::Program> parse_programs(std::string_view text, const std::string& file_name) {
  return translate([&] { return language::parse_programs(text, file_name); });
}

std::string print_text(const WireKernel& kernel) {
  return translate([&] {
    language::TextKernel text{.kernel = decoded(kernel)};
    for (const auto& [name, schedule] : kernel.schedules) {
      text.schedules.emplace_back(name, language::decode_schedule(schedule, text.kernel));
    }
    return language::print_text(text);
  });
}

std::string format_text(std::string_view text, const std::string& file_name) {
  return translate([&] { return language::format_text(text, file_name); });
}

std::string print_schedule(const WireKernel& kernel, std::string_view target,
                           const v1::Schedule& schedule) {
  return translate([&] {
    const language::Kernel checked = decoded(kernel);
    return language::print_schedule(checked, target, language::decode_schedule(schedule, checked));
  });
}

std::vector<std::pair<std::string, v1::Schedule>> parse_schedules(std::string_view text,
                                                                  const std::string& file_name,
                                                                  const WireKernel& kernel) {
  return translate([&] {
    std::vector<std::pair<std::string, v1::Schedule>> schedules;
    for (const auto& [target, schedule] :
         language::parse_schedules(text, file_name, decoded(kernel))) {
      schedules.emplace_back(target, language::encode(schedule));
    }
    return schedules;
  });
}

std::string apply_schedules(std::string_view text, const std::string& file_name,
                            std::string_view kernel, std::string_view schedules,
                            const std::string& schedule_file) {
  return translate(
      [&] { return language::apply_schedules(text, file_name, kernel, schedules, schedule_file); });
}

}  // namespace kiln::border
