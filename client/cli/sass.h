#pragma once

#include <optional>
#include <string>

namespace kiln::cli {

/// What NVIDIA's disassembler says of a cubin, with line comments; nothing where there is no
/// nvdisasm: in PATH, or where CUDA_HOME or /usr/local/cuda have it.
std::optional<std::string> disassembled(const std::string& cubin);

}  // namespace kiln::cli
