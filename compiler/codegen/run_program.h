#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace kiln::codegen {

/// How a program ended.
struct ProgramEnd {
  enum class Kind { Exited, Killed, Overran, NotStarted };
  Kind kind = Kind::Exited;
  int code = 0;        // exit code, signal, or errno
  std::string output;  // the first 64 KB of what it wrote to both of its outputs
};

/// Runs `words[0]` with the rest as its arguments and `environment` ("NAME=value") as its own,
/// without input. After the limit it is ended, with all that it started.
ProgramEnd run_program(const std::vector<std::string>& words,
                       const std::vector<std::string>& environment,
                       std::chrono::milliseconds limit);

}  // namespace kiln::codegen
