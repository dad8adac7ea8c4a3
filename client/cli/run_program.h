#pragma once

#include <string>
#include <vector>

#include "client/cli/kernel_file.h"
#include "client/cli/outputs.h"
#include "client/cli/program.h"

namespace kiln::cli {

/// How many steps of which program.
struct StepChoice {
  std::string program;
  std::uint64_t steps = 0;
  std::uint64_t epochs = 0;
  std::uint64_t batch = 0;
  std::uint64_t first_step = 0;
  bool stop_on_nan = false;

  void add_to(CLI::App& command);
  /// The program of a kernel file that is to be run, if it is one and not a kernel. Throws
  /// UsageError where the file has several, or not the one named, or steps of a kernel are asked
  /// for.
  const client::Program* choose(const std::vector<client::Program>& programs,
                                const KernelChoice& kernel) const;
};

/// Runs the program; outputs and parameters go where `output` says.
int run_program(const Common& common, const client::Program& program, const StepChoice& steps,
                const CallChoice& call, const OutputChoice& output);

}  // namespace kiln::cli
