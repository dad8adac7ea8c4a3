#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "client/cli/kernel_file.h"
#include "client/cli/program.h"

namespace kiln::cli {

/// `kiln schedule explain`: the schedules that a kernel may have, what each is predicted to take,
/// and on request what it does take.
struct ExplainSchedule {
  KernelChoice kernel;
  CallChoice call;
  std::string device = "cpu";
  std::string arch;
  unsigned threads = 0;
  unsigned top = 12;
  bool measure = false;
  bool steps = false;

  void add_to(CLI::App& command);
  int run(const Common& common) const;
};

}  // namespace kiln::cli
