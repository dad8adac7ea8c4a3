#pragma once

#include <string>

#include "client/cli/kernel_file.h"
#include "client/cli/outputs.h"
#include "client/cli/program.h"

namespace kiln::cli {

/// Whether a file is a compiled kernel, by its name or by how it begins.
bool is_artifact(const std::string& path);

/// Runs a compiled kernel in this process: no service is asked, and none is started. Throws
/// UsageError for flags that say how a kernel is compiled.
int run_artifact(const Common& common, const KernelChoice& kernel, const CallChoice& call,
                 const OutputChoice& output);

}  // namespace kiln::cli
