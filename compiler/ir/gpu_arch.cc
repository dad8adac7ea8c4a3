// From the CUDA C++ programming guide, technical specifications by compute capability; that wgmma
// turns factors of 16 bits alone is in the PTX ISA.
//   sm_90  ->  2048 threads, 32 blocks, 228 KB of shared memory, of which a block may have 227
#include "compiler/ir/gpu_arch.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "runtime/core/gpu_name.h"

namespace kiln::ir {
namespace {

struct Row {
  std::string_view arch;
  int64_t threads;
  int64_t blocks;
  int64_t shared_kilobytes;
};

constexpr Row kRows[] = {
    {"sm_75", 1024, 16, 64},   {"sm_80", 2048, 32, 164},  {"sm_86", 1536, 16, 100},
    {"sm_87", 1536, 16, 164},  {"sm_88", 1536, 16, 164},  {"sm_89", 1536, 24, 100},
    {"sm_90", 2048, 32, 228},  {"sm_100", 2048, 32, 228}, {"sm_103", 2048, 32, 228},
    {"sm_110", 1536, 24, 228}, {"sm_120", 1536, 24, 100}, {"sm_121", 1536, 24, 100},
};

}  // namespace

bool is_short_float(DType type) { return type == DType::Float16 || type == DType::BFloat16; }

int capability_of(std::string_view arch) {
  if (arch.empty()) arch = kDefaultGpuArch;
  int capability = 0;
  if (arch.starts_with("sm_"))
    std::from_chars(arch.data() + 3, arch.data() + arch.size(), capability);
  return capability;
}

GpuArch gpu_arch(std::string_view arch) {
  if (arch.empty()) arch = kDefaultGpuArch;
  arch = without_figures(arch);
  if (arch.ends_with('a') || arch.ends_with('f')) arch.remove_suffix(1);
  const auto* row = std::ranges::find(kRows, arch, &Row::arch);
  if (row == std::end(kRows)) return {.capability = capability_of(arch)};
  // Of 8.0 and later the system takes one kilobyte for each block. From 9.0 on a cubin counts it.
  const int64_t shared = row->shared_kilobytes << 10;
  const int64_t reserved = arch == "sm_75" ? 0 : 1 << 10;
  return {.capability = capability_of(arch),
          .threads = row->threads,
          .blocks = row->blocks,
          .shared_bytes = shared,
          .shared_bytes_of_block = shared - reserved,
          .uncounted_bytes = arch.starts_with("sm_8") ? reserved : 0,
          .bytes_along_sums = arch == "sm_90"};
}

}  // namespace kiln::ir
