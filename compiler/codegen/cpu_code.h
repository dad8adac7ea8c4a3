#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "compiler/ir/kernel.h"
#include "compiler/ir/print.h"

namespace kiln::codegen {

/// A lowered kernel and the name of its entry in the object.
struct EntryKernel {
  std::string entry;
  const ir::Kernel* kernel = nullptr;
};

/// Code that calls a function before each access to memory, put there by LLVM's pass for a
/// sanitizer. For tests, which bring the functions (tests/support/watched_run.h).
enum class Sanitizer : uint8_t {
  None,
  Address,  // __asan_load4_noabort(address), ..
  Thread,   // __tsan_read4(address), ..; accesses of more than 16 bytes are left out
};

/// What to generate code for, and how exactly.
struct CpuOptions {
  std::string arch;     // as LLVM names CPUs
  bool strict = false;  // a * b + c is rounded twice, as it is written
  Sanitizer sanitizer = Sanitizer::None;
};

/// In which form; Source and Assembly are for people.
enum class CpuOutput {
  Object,  // ELF
  Source,  // LLVM IR, before optimisation
  Assembly,
};

/// Generates code for lowered kernels: one module, an entry each (KilnEntry). Any number of threads
/// may call it. Throws Internal LLVM when LLVM refuses what we made.
std::string emit_cpu_code(std::span<const EntryKernel> kernels, const CpuOptions& options,
                          CpuOutput output);

/// The code of one kernel as text in which each instruction says, as for debuggers, on which line
/// of the printed loops its statement stands: LLVM IR after the passes, and assembly with `.loc`.
struct CpuListing {
  std::string llvm;
  std::string assembly;
};
CpuListing cpu_listing(const EntryKernel& kernel, const ir::PrintedKernel& loops,
                       const CpuOptions& options);

/// Throws Unsupported ARCH unless LLVM knows the CPU.
void check_cpu_arch(std::string_view arch);

/// "19.1.7"
std::string llvm_version();

}  // namespace kiln::codegen
