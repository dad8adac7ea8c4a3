#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::codegen {

/// What a cubin says of one of its kernels.
struct CubinKernel {
  std::string name;
  int registers = 0;         // a thread
  int64_t stack_bytes = 0;   // a thread; spilled registers are part of it
  int64_t shared_bytes = 0;  // a block, static
  int64_t threads = 0;       // that a block must have; 0: it does not say
  int64_t instructions = 0;
  std::string_view code = {};  // of the cubin
};

/// Reads the kernels of a cubin, in the order of its sections. Empty when the bytes are not one.
///
/// A cubin is an ELF file; the attributes stand in its .nv.info sections. The format is not
/// published: the numbers of the attributes were read off cubins of CUDA 13.0 and compared with
/// what ptxas says.
std::vector<CubinKernel> kernels_of_cubin(std::string_view cubin);

}  // namespace kiln::codegen
