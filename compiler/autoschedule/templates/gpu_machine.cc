// One GPU an architecture, the one that data centres have most of. From NVIDIA's data sheets:
// multiprocessors, boost clock, memory bandwidth; float32 lanes from the CUDA C++ programming
// guide, throughput of native arithmetic instructions. L2 bytes are those that Chips and Cheese
// measured (A100, H100) or half of what the fabric could, for the others.
//
//   sm_90  ->  H100 SXM: 132 x 128 lanes at 1.83 GHz, 3.35 TB/s
#include "compiler/autoschedule/templates/gpu_machine.h"

#include <charconv>
#include <iterator>

#include "compiler/ir/gpu_arch.h"

namespace kiln::autoschedule {
namespace {

struct Row {
  int capability;
  GpuMachine machine;
};

constexpr GpuMachine machine(std::string_view name, int64_t multiprocessors, double gigahertz,
                             int64_t float_lanes, double l2_gigabytes, double memory_gigabytes) {
  const double cycles = static_cast<double>(multiprocessors) * gigahertz;  // of all, in 1e9
  return {.name = name,
          .multiprocessors = multiprocessors,
          .gigahertz = gigahertz,
          .float_lanes = float_lanes,
          .l2_bytes = l2_gigabytes / cycles,
          .memory_bytes = memory_gigabytes / cycles};
}

constexpr Row kRows[] = {
    {75, machine("T4", 40, 1.59, 64, 1270, 320)},
    {80, machine("A100 SXM", 108, 1.41, 64, 4500, 2039)},
    {86, machine("A10", 72, 1.695, 128, 2500, 600)},
    {89, machine("L4", 58, 2.04, 128, 2400, 300)},
    {90, machine("H100 SXM", 132, 1.83, 128, 5700, 3352)},
    {100, machine("B200", 148, 1.85, 128, 9000, 8000)},
    {120, machine("RTX PRO 6000", 188, 2.6, 128, 8000, 1792)},
};

}  // namespace

const GpuMachine& gpu_machine(std::string_view arch) {
  if (arch.empty()) arch = ir::kDefaultGpuArch;
  int capability = 0;
  if (arch.starts_with("sm_"))
    std::from_chars(arch.data() + 3, arch.data() + arch.size(), capability);
  const Row* found = kRows;
  for (const Row& row : kRows) {
    if (row.capability <= capability) found = &row;
  }
  return found->machine;
}

}  // namespace kiln::autoschedule
