#pragma once

#include <string>
#include <vector>

#include "client/cpp/kernel_state.h"

namespace kiln {
inline namespace client {
namespace detail {

/// A kernel of a file that export_library wrote, here or in the Python package.
struct SavedKernel {
  v1::CompileRequest request;
  std::vector<std::string> argument_sizes;  // see KernelState
};

/// Writes kernels to `path`, whole or not at all: what was built, as a definition, never as machine
/// code. So a file may come from anyone and works with any service, which compiles it or has it in
/// its cache.
void save_module(const std::string& path, const std::vector<const KernelState*>& kernels);
std::vector<SavedKernel> read_module(const std::string& path);

}  // namespace detail
}  // namespace client
}  // namespace kiln
