#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace kiln::codegen {

/// What the threads of a GPU's kernel do most, read from its machine code: of the loops that have
/// no other in them, the one with the most arithmetic, that of tensor cores before other; where
/// none has any, all of the kernel. (What a pipeline leaves behind it may be denser, but has less.)
struct MainLoop {
  /// Instructions that move so many bytes for a thread: "LDG" from memory, "LDS" from shared
  /// memory, "STG", "STS"; "LDGSTS" from the one to the other; "LDSM", a matrix each 4 bytes.
  struct Access {
    std::string_view kind;
    int64_t bytes = 0;
    int64_t count = 0;
  };
  bool is_loop = false;
  int64_t instructions = 0;
  int64_t arithmetic = 0;  // multiply-adds, or matrix instructions where there are any
  std::string_view kind;   // of the arithmetic: "FFMA", "HMMA"; empty where there is none
  int64_t barriers = 0;
  int64_t spills = 0;  // loads and stores of the stack
  std::vector<Access> accesses;

  double share() const {
    return static_cast<double>(arithmetic) /
           static_cast<double>(instructions > 0 ? instructions : 1);
  }
};

/// `code`: the instructions of one kernel for an architecture ("sm_90"), of sm_75 or later.
///
/// The encoding is not published: opcodes, widths and the targets of branches were read off what
/// NVIDIA's disassembler of CUDA 13.0 says of code for sm_75 to sm_120.
MainLoop main_loop_of(std::string_view code, std::string_view arch);

}  // namespace kiln::codegen
