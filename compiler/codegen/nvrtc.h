#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kiln::codegen {

/// What NVRTC makes of one source.
struct CudaBinary {
  std::string cubin;
  std::string ptx;
};

struct CudaOptions {
  std::string_view arch;        // "sm_90"
  bool strict = false;          // a product and a sum are rounded each, never as one multiply-add
  bool lines = false;           // the code says which line of the source it is of
  int64_t multiprocessors = 0;  // that sources are written for; 0: not known
  bool short_sums = false;      // 8-bit floats are added up by tensor cores alone
};

/// Throws InvalidArgument ARCH for what is not written as an architecture.
void check_cuda_arch(std::string_view arch);

/// Compiles header-free CUDA C. Needs no GPU and no driver.
///
/// Throws Unavailable NO_NVRTC when the library is not found, InvalidArgument ARCH for an
/// architecture that it does not know, Internal CUDA_SOURCE with its first message when the source
/// is wrong.
CudaBinary compile_cuda_source(const std::string& source, const CudaOptions& options);

/// "NVRTC 13.0 in /usr/lib/libnvrtc.so.13". Throws Unavailable NO_NVRTC with where was looked and
/// what to do.
std::string describe_nvrtc();

}  // namespace kiln::codegen
