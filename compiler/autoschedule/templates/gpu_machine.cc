// One GPU an architecture. Float32 lanes are those of the CUDA C++ programming guide (throughput of
// native arithmetic instructions). Multiprocessors, boost clocks and what L2 gives to all of them
// together are figures of the order that is published for these cards, and those of L2 are
// estimates: an H200 was measured to give 6.1 to 6.3 TB/s from half of its L2, 4.6 from nearly all.
// Memory's are those of the cards' data sheets as reviews repeat them, and those of tensor cores
// follow from their data sheets' rates without sparsity. On Hopper mma.sync comes to 0.629 of its
// (W. Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture", 2024); for
// Blackwell's tcgen05 the same is taken.
//
// Of a GPU that is there its driver says how many multiprocessors it has, and how fast it and its
// memory are.
//
//   sm_90                        ->  132 multiprocessors of 128 lanes and 24 bytes a cycle from L2
//   sm_89+sms142+gbs864+l2mib96  ->  142 of an L4's, with memory and L2 of an L40S
#include "compiler/autoschedule/templates/gpu_machine.h"

#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "compiler/ir/gpu_arch.h"

namespace kiln::autoschedule {
namespace {

struct Row {
  int capability;
  std::string_view name;
  int64_t multiprocessors;
  int64_t float_lanes;
  int64_t matrix_lanes;
  double warp_share;
  double l2_gigabytes;  // a second, of all of them together
  double memory_gigabytes;
  int64_t l2_mebibytes;
  double gigahertz;
};

constexpr Row kRows[] = {
    {75, "T4", 40, 64, 512, 1, 1270, 320, 4, 1.59},
    {80, "A100 SXM 40 GB", 108, 64, 1024, 1, 4500, 1555, 40, 1.41},
    {86, "A10", 72, 128, 512, 1, 2500, 600, 6, 1.695},
    {89, "L4", 58, 128, 512, 1, 2400, 300, 48, 2.04},
    {90, "H100 SXM", 132, 128, 2048, 0.629, 5700, 3350, 50, 1.83},
    {100, "B200", 148, 128, 4096, 0.629, 9000, 8000, 65, 1.85},
    {120, "RTX PRO 6000", 188, 128, 512, 1, 8000, 1792, 128, 2.6},
};

const Row& row_of(std::string_view arch) {
  const int capability = ir::capability_of(arch);
  const Row* found = kRows;
  for (const Row& row : kRows) {
    if (row.capability <= capability) found = &row;
  }
  return *found;
}

/// Whether a figure is another one: clocks and rates of one GPU differ by a few percent.
bool differs(int64_t figure, double known, double most) {
  return figure > 0 && std::abs(static_cast<double>(figure) - known) > most * known;
}

}  // namespace

GpuMachine gpu_machine(std::string_view arch) {
  const Row& row = row_of(arch);
  const double cycles = static_cast<double>(row.multiprocessors) * row.gigahertz;
  GpuMachine machine{.name = std::string(row.name),
                     .multiprocessors = row.multiprocessors,
                     .float_lanes = row.float_lanes,
                     .matrix_lanes = row.matrix_lanes,
                     .warp_share = row.warp_share,
                     .l2_bytes = row.l2_gigabytes / cycles,
                     .memory_bytes = row.memory_gigabytes / cycles,
                     .l2_size = row.l2_mebibytes << 20,
                     .gigahertz = row.gigahertz,
                     .bytes_along_sums = ir::gpu_arch(arch).bytes_along_sums};
  const std::optional<GpuFigures> figures = figures_of(arch);
  if (!figures) return machine;
  machine.name = std::string(arch);
  if (figures->multiprocessors > 0) machine.multiprocessors = figures->multiprocessors;
  if (figures->l2_mebibytes > 0) machine.l2_size = figures->l2_mebibytes << 20;
  if (figures->megahertz > 0) machine.gigahertz = static_cast<double>(figures->megahertz) / 1000;
  const double gigabytes =
      figures->gigabytes > 0 ? static_cast<double>(figures->gigabytes) : row.memory_gigabytes;
  machine.memory_bytes =
      gigabytes / (static_cast<double>(machine.multiprocessors) * machine.gigahertz);
  return machine;
}

double loads_under_way(double threads) {
  return threads > static_cast<double>(ir::kThreadsWithLoads) ? 4 : 10;
}

std::string arch_for(std::string_view arch, const GpuFigures& figures) {
  constexpr double kOfClocks = 0.15;  // what a GPU runs at depends on its power
  constexpr double kOfMemory = 0.05;
  constexpr double kOfL2 = 0.2;
  const Row& row = row_of(arch);
  const bool is_another =
      (figures.multiprocessors > 0 && figures.multiprocessors != row.multiprocessors) ||
      differs(figures.gigabytes, row.memory_gigabytes, kOfMemory) ||
      differs(figures.l2_mebibytes, static_cast<double>(row.l2_mebibytes), kOfL2) ||
      differs(figures.megahertz, row.gigahertz * 1000, kOfClocks);
  if (!is_another) return std::string(arch);
  const auto or_known = [](int64_t figure, double known) {
    return figure > 0 ? figure : static_cast<int64_t>(known);
  };
  return with_figures(
      arch, {.multiprocessors =
                 or_known(figures.multiprocessors, static_cast<double>(row.multiprocessors)),
             .gigabytes = or_known(figures.gigabytes, row.memory_gigabytes),
             .l2_mebibytes = or_known(figures.l2_mebibytes, static_cast<double>(row.l2_mebibytes)),
             .megahertz = or_known(figures.megahertz, row.gigahertz * 1000)});
}

std::string text_of(const GpuMachine& machine) {
  const double cycles = static_cast<double>(machine.multiprocessors) * machine.gigahertz;
  return fmt::format(
      "{}: {} multiprocessors of {} float32 lanes at {:g} GHz; {:.0f} GB/s from L2 ({} MiB), "
      "{:.0f} "
      "from memory; of data sheets and the press, L2's rate estimated",
      machine.name, machine.multiprocessors, machine.float_lanes, machine.gigahertz,
      machine.l2_bytes * cycles, machine.l2_size >> 20, machine.memory_bytes * cycles);
}

}  // namespace kiln::autoschedule
