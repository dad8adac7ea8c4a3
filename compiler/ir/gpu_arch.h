#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/core/dtype.h"

namespace kiln::ir {

/// Hopper: what a kernel is compiled for where no GPU and no arch is named.
inline constexpr std::string_view kDefaultGpuArch = "sm_90";

/// What a multiprocessor of an architecture has, for all blocks that run on it at once.
struct GpuArch {
  int capability = 0;  // 80 of sm_80
  int64_t threads = 1024;
  int64_t blocks = 16;
  int64_t registers = 65536;
  int64_t shared_bytes = 64 << 10;
  int64_t shared_bytes_of_block = 48 << 10;  // at most, where they are asked for
  int64_t uncounted_bytes = 0;               // of it for each block, which no cubin tells of
  bool bytes_along_sums = false;  // products of warpgroups read 8-bit factors along the sum alone
};

/// Shared memory that a block has without asking for it, on every device.
inline constexpr int64_t kStaticSharedBytes = 48 << 10;

/// Of each multiprocessor since sm_50: shared memory has so many banks, each of which gives so many
/// bytes a cycle (CUDA C++ programming guide).
inline constexpr int64_t kBanks = 32;
inline constexpr int64_t kBankBytes = 4;

/// With so many threads on a multiprocessor, at most, each has registers for ten loads and more
/// under way; ptxas gives more threads as many as four need.
inline constexpr int64_t kThreadsWithLoads = 1024;

/// float16, bfloat16.
bool is_short_float(DType type);

/// 90 of "sm_90" and "sm_90a"; empty is the default; 0 of what is no architecture.
int capability_of(std::string_view arch);

/// "sm_90", "sm_90a"; empty is the default. Of an architecture that is not in the table, what every
/// one has.
GpuArch gpu_arch(std::string_view arch);

}  // namespace kiln::ir
