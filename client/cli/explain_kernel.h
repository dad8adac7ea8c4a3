#pragma once

#include <string>

#include "client/cli/kernel_file.h"
#include "client/cli/program.h"

namespace kiln::cli {

/// `kiln explain FILE|operator`: where the time of a kernel goes, and its code beside its loops.
struct ExplainKernel {
  KernelChoice kernel;  // whose file is FILE or the name of an operator
  CallChoice call;
  std::string arch;
  bool no_run = false;
  bool no_code = false;
  std::string html;  // a file

  void add_to(CLI::App& command);
  /// Whether this names a kernel file, or an operator that Kiln comes with.
  static bool is_kernel(const std::string& word);
  int run(const Common& common) const;
};

}  // namespace kiln::cli
