// One GPU an architecture. Float32 lanes are those of the CUDA C++ programming guide (throughput of
// native arithmetic instructions). Multiprocessors, boost clocks and what L2 gives to all of them
// together are figures of the order that is published for these cards; none was measured here, and
// those of L2 are estimates. They decide between tiles only.
//
//   sm_90  ->  132 multiprocessors of 128 lanes, 24 bytes a cycle from L2 each
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

/// With the bytes from L2 as 1e9 a second for all multiprocessors, at so many gigahertz.
constexpr GpuMachine machine(int64_t multiprocessors, int64_t float_lanes, double l2_gigabytes,
                             double gigahertz) {
  return {.multiprocessors = multiprocessors,
          .float_lanes = float_lanes,
          .l2_bytes = l2_gigabytes / (static_cast<double>(multiprocessors) * gigahertz)};
}

constexpr Row kRows[] = {
    {75, machine(40, 64, 1270, 1.59)},     // T4
    {80, machine(108, 64, 4500, 1.41)},    // A100 SXM
    {86, machine(72, 128, 2500, 1.695)},   // A10
    {89, machine(58, 128, 2400, 2.04)},    // L4
    {90, machine(132, 128, 5700, 1.83)},   // H100 SXM
    {100, machine(148, 128, 9000, 1.85)},  // B200
    {120, machine(188, 128, 8000, 2.6)},   // RTX PRO 6000
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
