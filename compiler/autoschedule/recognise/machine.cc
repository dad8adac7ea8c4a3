// The table of microarchitectures that schedules are planned for, with where each figure is from.
//
//   znver4  ->  Zen 4: one multiply-add of 64 bytes a cycle, 32 KiB of L1, 1 MiB of L2
//
// A CPU that nobody has described is not taken for another one: it is planned as the least of those
// that have its vectors.
#include "compiler/autoschedule/recognise/machine.h"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

#include "runtime/core/cpu_name.h"

namespace kiln::autoschedule {
namespace {

constexpr int64_t kKiB = 1024;
// L1 is found by an address within a page, so that its ways are as large.
constexpr int64_t kPage = 4 * kKiB;

struct Row {
  std::span<const std::string_view> cpus;  // LLVM's names
  Machine machine;
};

constexpr std::string_view kSkylakeServer[] = {"skylake-avx512", "skx", "cascadelake",
                                               "cooperlake"};
constexpr std::string_view kIceLake[] = {"icelake-server"};
constexpr std::string_view kGoldenCove[] = {"sapphirerapids", "emeraldrapids"};
constexpr std::string_view kHaswell[] = {"haswell", "core-avx2", "broadwell", "skylake"};
constexpr std::string_view kZen2[] = {"znver2"};
constexpr std::string_view kZen3[] = {"znver3"};
constexpr std::string_view kZen4[] = {"znver4"};
constexpr std::string_view kZen5[] = {"znver5"};
constexpr std::string_view kNeoverseV1[] = {"neoverse-v1"};
constexpr std::string_view kNeoverseV2[] = {"neoverse-v2"};
constexpr std::string_view kV4[] = {"x86-64-v4"};
constexpr std::string_view kV3[] = {"x86-64-v3"};
constexpr std::string_view kV2[] = {"x86-64-v2", "x86-64"};

/// Caches in KiB.
constexpr Machine core(std::string_view name, double multiply_adds, double operations,
                       double latency, double loads, int64_t l1, int64_t l2,
                       std::string_view source) {
  return {.name = name,
          .multiply_adds = multiply_adds,
          .operations = operations,
          .latency = latency,
          .loads = loads,
          .l1_bytes = l1 * kKiB,
          .l2_bytes = l2 * kKiB,
          .l1_ways = l1 * kKiB / kPage,
          .l2_ways = l2 == 1280   ? 20
                     : l2 >= 1024 ? 16
                                  : 8,
          .cores = kFewCores,
          .source = source};
}

/// L3 is near to the cores of Zen. By products of random sizes on a Zen 5; bytes a cycle from L2 as
/// "Software Optimization Guide for the AMD Family 19h Processors" has them.
constexpr Machine zen(Machine machine) {
  machine.from_l3 = 23;
  machine.from_memory = 6;
  machine.piece_cycles = 5;
  machine.page_cycles = 0;
  return machine;
}

/// Of Zen 2 and Zen 3, which take longer to find a page than Zen 5. By 72 products of random sizes
/// on a Zen 3: 16 x 2910 x 928 takes 1.9 ms with copied columns, and 2.8 in place. Copying 128
/// bytes of each of 4096 rows of 16 KiB takes 74 cycles each from memory, 512 bytes 168. Sums down
/// 64 MiB take 3.4 to 4.1 ms with 8 rows at once and 4.1 to 4.7 with 4, maxima 4.2 and 4.5 to 5.5.
constexpr Machine zen3(Machine machine) {
  machine = zen(machine);
  machine.far_piece_cycles = 70;
  machine.memory_rows.down = 8;
  machine.page_cycles = 7;
  return machine;
}

/// Of Zen 4 and Zen 5, which gather element by element. Patches and filters by what convolutions of
/// 30 shapes take so and otherwise on a Zen 5, 7 x 7 to 224 x 224, and of 24 on a Zen 4. Of 12288
/// elements in L1 four vectors side by side take 13 to 26 % less than two (exp, log, sigmoid, erf,
/// tanh in gelu), eight no less than four; sin takes as long either way.
constexpr Machine zen_with_avx512(Machine machine) {
  machine = zen(machine);
  machine.chained_vectors = 4;
  machine.copied_line_cycles = 5;
  machine.gathered_cycles = 6;
  machine.patch_cycles = 1.8;
  machine.far_patch_cycles = 2.8;
  machine.filter_cycles = 0.7;
  machine.turned_cycles = 0.7;
  machine.apart_cycles = 0.11;
  return machine;
}

/// Of Zen 4, which adds one vector a cycle: meanwhile what is next comes (products of 256 x 1000 x
/// 100 to 784 x 1000 x 1000). Sums of rows of 64 MiB take 2.3 ms one by one and 3.1 to 3.7 ms two
/// or four side by side, sums down its columns 2.3 to 2.6 ms with 16 rows of one vector and 3.4
/// to 5.2 with four of four.
constexpr Machine zen4(Machine machine) {
  machine = zen_with_avx512(machine);
  machine.memory_rows = {.along = 1, .down = 16, .down_vectors = 1};
  machine.l2_ways = 8;
  machine.held_cycles = 0.2;
  machine.far_filter_cycles = 2.5;
  machine.spread_cycles = 0.2;
  machine.copied_row_cycles = 2.4;
  return machine;
}

/// Of Zen 5, whose loops end beside what they compute.
constexpr Machine zen5(Machine machine) {
  machine = zen_with_avx512(machine);
  machine.loop_cycles = 0;
  machine.held_cycles = 0;
  machine.far_filter_cycles = 0.7;
  machine.spread_cycles = 0.1;
  machine.copied_row_cycles = 2;
  return machine;
}

/// Behind L2 lies a mesh. By products on Sapphire Rapids: of 16 x 5889 x 141 each line of columns
/// in place takes 70 to 136 cycles.
constexpr Machine mesh(Machine machine) {
  machine.from_l2 = 48;
  machine.from_l3 = 10;
  machine.piece_cycles = 64;
  machine.page_cycles = 2;
  return machine;
}

/// By 190 products of random sizes on Emerald Rapids, in float32, float64, bfloat16 and bytes. A
/// core that reads 64 MiB has 9 bytes a cycle from L3; where it writes as many, half of that. Its
/// scheduler is full of multiply-adds that wait long before it sees the loads of later steps: 8 x
/// 4096 x 1024 takes 926 us in tiles of 8 x 48, and 736, 726, 834 and 847 with the columns fetched
/// 4, 8, 16 and 32 steps before; 12 x 4096 x 1024 in 12 x 32 1405, and 931, 813, 833 and 866. In
/// panels few rows take 1.0 to 1.35 times as long as so: 24 x 1024 x 1024 510 us and 350, where 227
/// and 211 are predicted, 48 x 1024 x 1024 688 and 680, and 431 and 423.
constexpr Machine golden_cove(Machine machine) {
  machine = mesh(machine);
  machine.from_l3 = 4;
  machine.held_cycles = 0.3;
  machine.piece_cycles = 32;
  machine.steps_ahead = 8;
  machine.ahead_from_l3 = 7;
  machine.not_ahead = 1.2;
  return machine;
}

/// L1 of Neoverse has 4 ways of 16 KiB; a mesh is behind L2, which has 8. By Arm's "Neoverse V1"
/// and "V2 Core Technical Reference Manual", of the smaller of the L2s that they name for servers.
constexpr Machine neoverse(Machine machine) {
  machine = mesh(machine);
  machine.l1_ways = 4;
  machine.l2_ways = 8;
  return machine;
}

/// Instructions by LLVM 19's scheduling models, as llvm-mca prints them, where nothing else is
/// said. Of caches "measured" is what sysfs says of a host.
constexpr Row kRows[] = {
    {kSkylakeServer, mesh(core("Skylake server", 2, 2, 4, 2, 32, 1024,
                               "LLVM's X86SchedSkylakeServer; caches: AnandTech on Sunny Cove, "
                               "allinfo.space on Sapphire Rapids"))},
    {kIceLake,
     mesh(core("Ice Lake server", 1, 2, 4, 2, 48, 1280,
               "LLVM's X86SchedIceLake; caches: AnandTech on Sunny Cove, allinfo.space on "
               "Sapphire Rapids"))},
    {kGoldenCove,
     golden_cove(core("Golden Cove server", 2, 2, 4, 2, 48, 2048,
                      "multiply-adds, loads and transfers measured on Sapphire and Emerald "
                      "Rapids; caches: HardwareTimes on Sapphire Rapids"))},
    {kHaswell, core("Haswell to Skylake", 2, 3, 5, 2, 32, 256,
                    "LLVM's X86SchedHaswell; caches: AnandTech on Sunny Cove")},
    {kZen2,
     zen3(core("Zen 2", 2, 4, 5, 2, 32, 512,
               "LLVM's X86ScheduleZnver2, loads as on Zen 3; caches: AnandTech on Sunny Cove"))},
    {kZen3, zen3(core("Zen 3", 2, 4, 4, 2, 32, 512,
                      "LLVM's X86ScheduleZnver3; caches: meterpreter.org on Zen 4"))},
    {kZen4, zen4(core("Zen 4", 1, 2, 4, 2, 32, 1024,
                      "LLVM's X86ScheduleZnver4, multiply-adds measured; caches measured"))},
    {kZen5, zen5(core("Zen 5", 2, 2, 4, 2, 48, 1024,
                      "LLVM's X86ScheduleZnver5, multiply-adds measured; caches measured"))},
    {kNeoverseV1, neoverse(core("Neoverse V1", 4, 4, 4, 3, 64, 1024,
                                "LLVM's AArch64SchedNeoverseV1; caches: Arm's manual of the core; "
                                "planned, not run"))},
    {kNeoverseV2, neoverse(core("Neoverse V2", 4, 4, 2, 3, 64, 1024,
                                "LLVM's AArch64SchedNeoverseV2; caches: Arm's manual of the core; "
                                "planned, not run"))},
    {kV4, core("x86-64-v4", 1, 2, 4, 2, 32, 1024, "the least of those with AVX-512")},
    {kV3, core("x86-64-v3", 2, 3, 5, 2, 32, 256, "the least of those with AVX2")},
    {kV2, core("x86-64-v2", 2, 3, 5, 2, 32, 256, "x86-64-v3 with shorter vectors")},
};

const Machine& row_of(std::string_view cpu) {
  const auto* const found = std::ranges::find_if(
      kRows, [&](const Row& row) { return std::ranges::find(row.cpus, cpu) != row.cpus.end(); });
  return found == std::end(kRows) ? row_of("x86-64-v2") : found->machine;
}

bool is_listed(std::string_view cpu) {
  return std::ranges::any_of(
      kRows, [&](const Row& row) { return std::ranges::find(row.cpus, cpu) != row.cpus.end(); });
}

/// The level whose vectors these are.
std::string_view level_of(const ir::VectorUnit& vectors) {
  if (vectors.bytes == 64) return "x86-64-v4";
  return vectors.bytes == 32 ? "x86-64-v3" : "x86-64-v2";
}

}  // namespace

Machine machine_of(std::string_view arch) {
  const std::string_view cpu = cpu_name_of(arch).cpu;
  const ir::VectorUnit vectors = ir::vector_unit_of(arch);
  Machine machine = row_of(cpu.empty()      ? "sapphirerapids"
                           : is_listed(cpu) ? cpu
                                            : level_of(vectors));
  machine.vectors = vectors;
  machine.cores = cores_of(arch);
  return machine;
}

std::string text_of(const Machine& machine) {
  const ir::VectorUnit& vectors = machine.vectors;
  std::string sums;
  if (vectors.adds_bytes) sums += ", sums of four products of bytes";
  if (vectors.adds_halves) sums += ", of two of bfloat16";
  if (vectors.multiplies_tiles_of_bytes) sums += ", tiles of bytes";
  if (vectors.multiplies_tiles_of_halves) sums += ", tiles of bfloat16";
  if (vectors.multiplies_tiles_of_float16) sums += ", of float16";
  return fmt::format(
      "{}: {} vectors of {} bytes, {:g} multiply-add{} a cycle of {:g} cycles each, {:g} "
      "operations and {:g} loads a cycle, L1 {} KiB of {} ways, L2 {} KiB of {} ways, {:g} and "
      "{:g} bytes a cycle from L2 and L3, {:g} from memory and {:g} for all cores, {} pages in the "
      "TLB, {:g} cycles until others are awake{}{} ({})",
      machine.name, vectors.registers, vectors.bytes, machine.multiply_adds,
      machine.multiply_adds == 1 ? "" : "s", machine.latency, machine.operations, machine.loads,
      machine.l1_bytes / kKiB, machine.l1_ways, machine.l2_bytes / kKiB, machine.l2_ways,
      machine.from_l2, machine.from_l3, machine.from_memory, machine.from_memory_of_all,
      machine.tlb_pages, machine.wake_cycles, sums,
      machine.cores > kFewCores ? fmt::format(", {} cores", machine.cores) : "", machine.source);
}

}  // namespace kiln::autoschedule
