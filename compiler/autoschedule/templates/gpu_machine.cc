// One GPU an architecture. Float32 lanes are those of the CUDA C++ programming guide (throughput of
// native arithmetic instructions). Multiprocessors, boost clocks and what L2 gives to all of them
// together are figures of the order that is published for these cards; none was measured here, and
// those of L2 are estimates. Memory's are those of the cards' data sheets as reviews repeat them,
// and those of tensor cores follow from their data sheets' rates without sparsity. On Hopper
// mma.sync comes to 0.629 of its (W. Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU
// Architecture", 2024); for Blackwell's tcgen05 the same is taken.
//
//   sm_90  ->  132 multiprocessors of 128 lanes, 24 bytes a cycle from L2 each
#include "compiler/autoschedule/templates/gpu_machine.h"

#include <iterator>

#include <fmt/format.h>

#include "compiler/ir/gpu_arch.h"

namespace kiln::autoschedule {
namespace {

struct Row {
  int capability;
  GpuMachine machine;
};

/// With the bytes from L2 and from memory as 1e9 a second for all multiprocessors, at so many
/// gigahertz, and the size of L2 in MiB.
constexpr GpuMachine machine(std::string_view name, int64_t multiprocessors, int64_t float_lanes,
                             int64_t matrix_lanes, double warp_share, double l2_gigabytes,
                             double memory_gigabytes, int64_t l2_mib, double gigahertz) {
  const double cycles = static_cast<double>(multiprocessors) * gigahertz;
  return {.name = name,
          .multiprocessors = multiprocessors,
          .float_lanes = float_lanes,
          .matrix_lanes = matrix_lanes,
          .warp_share = warp_share,
          .l2_bytes = l2_gigabytes / cycles,
          .memory_bytes = memory_gigabytes / cycles,
          .l2_size = l2_mib << 20,
          .gigahertz = gigahertz};
}

constexpr Row kRows[] = {
    {75, machine("T4", 40, 64, 512, 1, 1270, 320, 4, 1.59)},
    {80, machine("A100 SXM 40 GB", 108, 64, 1024, 1, 4500, 1555, 40, 1.41)},
    {86, machine("A10", 72, 128, 512, 1, 2500, 600, 6, 1.695)},
    {89, machine("L4", 58, 128, 512, 1, 2400, 300, 48, 2.04)},
    {90, machine("H100 SXM", 132, 128, 2048, 0.629, 5700, 3350, 50, 1.83)},
    {100, machine("B200", 148, 128, 4096, 0.629, 9000, 8000, 65, 1.85)},
    {120, machine("RTX PRO 6000", 188, 128, 512, 1, 8000, 1792, 128, 2.6)},
};

}  // namespace

const GpuMachine& gpu_machine(std::string_view arch) {
  const int capability = ir::capability_of(arch);
  const Row* found = kRows;
  for (const Row& row : kRows) {
    if (row.capability <= capability) found = &row;
  }
  return found->machine;
}

std::string text_of(const GpuMachine& machine) {
  const double cycles = static_cast<double>(machine.multiprocessors) * machine.gigahertz;
  return fmt::format(
      "{}: {} multiprocessors of {} float32 lanes at {:g} GHz; {:.0f} GB/s from L2 ({} MiB), "
      "{:.0f} "
      "from memory; of data sheets and the press, L2's rate estimated, none measured",
      machine.name, machine.multiprocessors, machine.float_lanes, machine.gigahertz,
      machine.l2_bytes * cycles, machine.l2_size >> 20, machine.memory_bytes * cycles);
}

}  // namespace kiln::autoschedule
