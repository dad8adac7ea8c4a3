#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace kiln::codegen {

/// How a program ended.
struct ProgramEnd {
  enum class Kind { Exited, Killed, TookTooMuch, TookTooLong, NotStarted };
  Kind kind = Kind::Exited;
  int code = 0;        // exit code, signal, or errno
  std::string output;  // the first 64 KB of what it wrote to both of its outputs
};

/// How much of a processor a program may take, and how long it may take by the clock, as one that
/// waits for ever takes nothing of a processor.
struct RunLimits {
  std::chrono::milliseconds processor;
  std::chrono::milliseconds clock;
};

/// Runs `words[0]` with the rest as its arguments and `environment` ("NAME=value") as its own,
/// without input. After either limit it is ended, with all that it started; what programs that
/// it starts take of a processor is not counted.
ProgramEnd run_program(const std::vector<std::string>& words,
                       const std::vector<std::string>& environment, const RunLimits& limits);

}  // namespace kiln::codegen
