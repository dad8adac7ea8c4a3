#pragma once

#include <cstddef>
#include <string>

namespace kiln::codegen {

// The part of NVRTC's interface that Kiln uses. Declared here, so that building needs no toolkit;
// tests/codegen compares it with nvrtc.h where there is one. A result of 0 is success.
struct NvrtcLibrary {
  std::string path;
  void* handle;
  int (*version)(int* major, int* minor);
  int (*create_program)(void** program, const char* source, const char* name, int header_count,
                        const char* const* headers, const char* const* include_names);
  int (*destroy_program)(void** program);
  int (*compile_program)(void* program, int option_count, const char* const* options);
  int (*log_size)(void* program, size_t* bytes);
  int (*log)(void* program, char* text);
  int (*cubin_size)(void* program, size_t* bytes);
  int (*cubin)(void* program, char* bytes);
  int (*ptx_size)(void* program, size_t* bytes);
  int (*ptx)(void* program, char* text);
  const char* (*error_text)(int result);
};

/// NVRTC's code for an option it does not accept, which is what an unknown architecture is.
constexpr int kNvrtcInvalidOption = 5;

/// Opens the library once for the process. Looks at the file that KILN_NVRTC names, or else at what
/// the system finds, the toolkit's folders, and the PyPI wheels of the Python in use. Throws
/// Unavailable NO_NVRTC.
const NvrtcLibrary& nvrtc_library();

/// Which it is. Where nothing was compiled with it yet it is closed again: open it takes 30 MB of
/// memory, and 5 ms to be opened. Throws Unavailable NO_NVRTC.
struct NvrtcVersion {
  int major = 0;
  int minor = 0;
  std::string path;
};
NvrtcVersion nvrtc_version();

}  // namespace kiln::codegen
