#pragma once

#include <filesystem>
#include <vector>

namespace kiln::codegen {

/// Where NVIDIA's compilers may be: folders that hold lib, bin or nvvm. First the toolkit that
/// CUDA_HOME names and /usr/local/cuda, then the wheels beside the one that this program came in
/// (kiln-daemon[cuda] installs them there), then those of the Python in use, active environment
/// first.
std::vector<std::filesystem::path> cuda_folders();

}  // namespace kiln::codegen
