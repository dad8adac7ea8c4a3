#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/language/decode.h"

namespace kiln::language {

/// A kernel of a .kiln file, checked, with its schedules by target ("cpu", "cuda").
struct TextKernel {
  Kernel kernel;
  std::vector<std::pair<std::string, Schedule>> schedules;
};

/// Parses a .kiln file (grammar: docs/kernel_files.md). Throws InvalidArgument SYNTAX with line,
/// column and a caret under the place: the message is one sentence, the note is the line and the
/// caret.
std::vector<TextKernel> parse_text(std::string_view text, std::string_view file_name,
                                   const Limits& limits = {});

/// The kernel as a .kiln file; parse_text(print_text(k)) has the same definition and names.
std::string print_text(const TextKernel& kernel);

}  // namespace kiln::language
