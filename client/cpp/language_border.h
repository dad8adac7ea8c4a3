#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kiln/v1/kernel.pb.h"
#include "kiln/v1/program.pb.h"
#include "kiln/v1/schedule.pb.h"

/// All that the client takes from compiler/language, in plain types and wire messages: the
/// language's classes and the client's public ones have the same names, so that no source sees
/// both.
namespace kiln::border {

/// "float32", or nothing when there is no type of this number.
std::string_view dtype_name(int type);
/// The number, or 0.
int find_dtype(std::string_view name);
int dtype_size(int type);
bool is_float(int type);
bool is_signed_int(int type);
bool is_int(int type);

/// Type rules of the operator table, as promotion sees them.
enum class Operands { Same, Number, Float, Choose, AsTheyAre };

struct OperatorUse {
  std::string_view spelling;  // lives for ever
  Operands operands;
};
/// Throws Internal for a spelling that the table does not have.
OperatorUse find_operator(std::string_view spelling);
/// The type of the result. Throws what the language throws when operands do not fit.
int result_type(std::string_view spelling, std::span<const int> operands);
/// Whether the combiner takes and gives bools.
bool is_logical_combiner(std::string_view spelling);

/// Names of the axes that a step makes from operands of these names.
std::vector<std::string> defined_axis_names(std::string_view step,
                                            std::span<const std::string> operands);

/// A kernel on the wire, with the schedule blocks of its file.
struct WireKernel {
  v1::Definition definition;
  v1::SourceMap names;
  std::vector<std::pair<std::string, v1::Schedule>> schedules;
};
struct WireParameter {
  std::string name;
  int type;
  bool output;
  std::vector<std::string> shape;  // as a kernel file has it
};
/// Throws what the check of the definition throws.
std::vector<WireParameter> parameters_of(const WireKernel& kernel);

/// What is computed together of a kernel, as a kernel of its own, and what it has to do at least.
struct WirePart {
  std::string name;
  WireKernel kernel;
  double operations;
  double bytes_read;
  double bytes_written;
};
/// `sizes` has a value for each of the kernel's variables. The parts keep these variables.
std::vector<WirePart> parts_of(const WireKernel& kernel, std::span<const std::int64_t> sizes);
/// The extents of each parameter.
std::vector<std::vector<std::int64_t>> shapes_of(const WireKernel& kernel,
                                                 std::span<const std::int64_t> sizes);

/// Whether a step makes a stage.
bool defines_stage(std::string_view step);
/// Whether its axes are dimensions of the stage, whatever became of their loops.
bool is_of_dimensions(std::string_view step);
/// "fused": what the step has done to the axes that it uses up.
std::string_view done_by(std::string_view step);

/// What the last step of the kernel's first schedule makes: a stage with these axes.
struct WireStage {
  std::string name;
  std::vector<std::string> axes;  // data axes, then reduction axes
  size_t data;                    // how many of them are data axes
  std::string reduced;            // rfactor: the new reduction axis of the step's own stage
};
/// Throws what the checks of the definition and of the steps throw.
WireStage new_stage(const WireKernel& kernel);

std::vector<WireKernel> parse_text(std::string_view text, const std::string& file_name);
std::vector<v1::Program> parse_programs(std::string_view text, const std::string& file_name);
std::string print_text(const WireKernel& kernel);

/// A kernel file or schedule file, laid out anew.
std::string format_text(std::string_view text, const std::string& file_name);
/// The steps of a schedule as a block of a schedule file.
std::string print_schedule(const WireKernel& kernel, std::string_view target,
                           const v1::Schedule& schedule);
/// The blocks of a schedule file, by target.
std::vector<std::pair<std::string, v1::Schedule>> parse_schedules(std::string_view text,
                                                                  const std::string& file_name,
                                                                  const WireKernel& kernel);
/// The text of a kernel file with the blocks of a schedule file in the kernel of that name.
std::string apply_schedules(std::string_view text, const std::string& file_name,
                            std::string_view kernel, std::string_view schedules,
                            const std::string& schedule_file);

}  // namespace kiln::border
