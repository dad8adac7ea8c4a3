#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/language/kernel.h"
#include "compiler/language/tables/step.h"
#include "kiln/v1/program.pb.h"

namespace kiln::language {

/// Schedule blocks by target: "cpu", "cuda".
using TargetSchedules = std::vector<std::pair<std::string, Schedule>>;

/// A kernel of a .kiln file, checked, with its schedules.
struct TextKernel {
  Kernel kernel;
  TargetSchedules schedules;
};

/// Parses a .kiln file (grammar: docs/kernel_files.md). Throws InvalidArgument SYNTAX with line,
/// column and a caret under the place: the message is one sentence, the note is the line and the
/// caret.
std::vector<TextKernel> parse_text(std::string_view text, std::string_view file_name,
                                   const Limits& limits = {});

/// The programs of a .kiln file, which wire its kernels, as they are sent; each kernel with its
/// definition alone, as steps of programs are scheduled automatically. Throws as parse_text().
std::vector<v1::Program> parse_programs(std::string_view text, std::string_view file_name,
                                        const Limits& limits = {});

/// The text of a kernel file or of a schedule file laid out anew: a statement a line, two blanks a
/// level, comments at their places. What it says stays as it is, to the last bracket; only syntax
/// is checked.
std::string format_text(std::string_view text, std::string_view file_name,
                        const Limits& limits = {});

/// The kernel as a .kiln file; parse_text(print_text(k)) has the same definition and names.
std::string print_text(const TextKernel& kernel);

/// Parses a schedule file, which has nothing but schedule blocks, for this kernel, whose tensors
/// and axes it names. Throws as parse_text().
TargetSchedules parse_schedules(std::string_view text, std::string_view file_name,
                                const Kernel& kernel, const Limits& limits = {});

/// `schedule cpu { ... }`, in the names that print_text() gives the kernel.
std::string print_schedule(const Kernel& kernel, std::string_view target, const Schedule& schedule);

/// The text of a kernel file in which the kernel called `kernel` has the blocks of a schedule file,
/// in the place of its own for the same targets; formatted, all else with its comments as it was.
/// With no name, the only kernel. Throws as parse_text(); NotFound or InvalidArgument KERNEL when
/// the file has no such kernel, or several.
std::string apply_schedules(std::string_view text, std::string_view file_name,
                            std::string_view kernel, std::string_view schedules,
                            std::string_view schedule_file, const Limits& limits = {});

}  // namespace kiln::language
