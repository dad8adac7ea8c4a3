// As NVIDIA's occupancy calculator has it: registers are given to warps in units of 256, and the
// scarcest of threads, blocks, registers and shared memory decides.
#include "compiler/codegen/occupancy.h"

#include <algorithm>
#include <utility>

namespace kiln::codegen {
namespace {

constexpr int64_t kWarp = 32;
constexpr int64_t kUnitOfRegisters = 256;

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

Occupancy occupancy_of(const CubinKernel& kernel, int64_t threads, int64_t dynamic_bytes,
                       const ir::GpuArch& arch) {
  const int64_t warps = std::max<int64_t>((threads + kWarp - 1) / kWarp, 1);
  const int64_t of_warp =
      round_up(std::max<int64_t>(kernel.registers, 1) * kWarp, kUnitOfRegisters);
  const int64_t shared = kernel.shared_bytes + arch.uncounted_bytes + dynamic_bytes;
  const std::pair<int64_t, std::string_view> bounds[] = {
      {arch.threads / (warps * kWarp), "threads"},
      {arch.blocks, "blocks"},
      {arch.registers / of_warp / warps, "registers"},
      {shared == 0 ? arch.blocks : arch.shared_bytes / shared, "shared memory"},
  };
  const auto& least =
      *std::ranges::min_element(bounds, {}, [](const auto& bound) { return bound.first; });
  return {.blocks = least.first,
          .percent = 100 * least.first * warps * kWarp / arch.threads,
          .bound = least.second};
}

}  // namespace kiln::codegen
