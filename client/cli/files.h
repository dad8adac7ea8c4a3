#pragma once

#include <functional>
#include <ostream>
#include <string>

namespace kiln::cli {

/// What stands for standard input and output in the place of a file.
inline constexpr const char* kStandard = "-";

/// All of standard input, which is one thing alone: throws UsageError where `what` is the second
/// that is to be read from it.
std::string read_standard_input(const std::string& what);

/// Writes to a file through whatever is there. A plain file is replaced once the new one is whole,
/// and keeps its permissions; of a link it is the file that it points to; a device, a pipe or an
/// open file (/dev/stdout) is written to. Throws InvalidArgument OUTPUT_FILE.
void write_through(const std::string& path, const std::function<void(std::ostream&)>& write);

}  // namespace kiln::cli
