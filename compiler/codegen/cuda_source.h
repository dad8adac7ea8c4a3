#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/codegen/nvrtc.h"
#include "compiler/ir/kernel.h"
#include "runtime/core/artifact.h"

namespace kiln::codegen {

/// A kernel lowered for cuda (all passes), and what the names of its functions begin with.
struct CudaEntry {
  std::string prefix;  // "kiln_compact": its launches are kiln_compact_0, kiln_compact_1, ...
  const ir::Kernel* kernel = nullptr;
  bool is_narrow = false;  // indices have 32 bits: of calls where they fit (narrow_index.h)
};

struct CudaSource {
  std::string text;                            // needs no header
  std::vector<const ir::Node*> statements;     // whose line it is, by line; null: of none
  std::vector<std::vector<Launch>> launches;   // of each entry
  std::vector<std::vector<LaunchLoop>> loops;  // likewise
};

/// The kernels as CUDA C, a __global__ function a launch, called as runtime/core/kernel_abi.h says.
/// Registers are shared out for a GPU with as many multiprocessors as the options say. Throws
/// Unsupported for what CUDA does not know yet.
CudaSource cuda_source(std::span<const CudaEntry> entries, const CudaOptions& options = {});

}  // namespace kiln::codegen
