// Of which GPU a kernel is planned: that of the table, or one with figures of its own.
#include "compiler/autoschedule/templates/gpu_machine.h"

#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

using autoschedule::arch_for;
using autoschedule::gpu_machine;
using autoschedule::GpuMachine;

double gigabytes_of(const GpuMachine& machine) {
  return machine.memory_bytes * static_cast<double>(machine.multiprocessors) * machine.gigahertz;
}

TEST(GpuMachine, IsThatOfTheTable) {
  const GpuMachine h100 = gpu_machine("sm_90");
  EXPECT_EQ(h100.name, "H100 SXM");
  EXPECT_EQ(h100.multiprocessors, 132);
  EXPECT_NEAR(gigabytes_of(h100), 3350, 1);
  EXPECT_EQ(gpu_machine("sm_90a").name, h100.name);
}

TEST(GpuMachine, HasTheFiguresOfItsName) {
  const GpuMachine l4 = gpu_machine("sm_89");
  const GpuMachine l40s = gpu_machine("sm_89+l40s");
  EXPECT_EQ(l40s.multiprocessors, 142);
  EXPECT_NEAR(gigabytes_of(l40s), 864, 1);
  EXPECT_EQ(l40s.l2_size, 96 << 20);
  EXPECT_EQ(l40s.gigahertz, 2.52);
  // What a multiprocessor does in a cycle is that of the architecture.
  EXPECT_EQ(l40s.float_lanes, l4.float_lanes);
  EXPECT_EQ(l40s.l2_bytes, l4.l2_bytes);
  EXPECT_EQ(gpu_machine("sm_90+gbs4800").multiprocessors, 132);
}

/// Drivers speak of bus and clock: 5120 bits at 2619 MHz.
TEST(GpuMachine, IsOfTheTableWhereADeviceDiffersByLittle) {
  EXPECT_EQ(arch_for("sm_90", {132, 3352, 50, 1980}), "sm_90");
  EXPECT_EQ(arch_for("sm_90", {}), "sm_90");  // nothing is known
  EXPECT_EQ(arch_for("sm_90", {132, 4917, 50, 1980}), "sm_90+sms132+gbs4917+l2mib50+mhz1980");
  EXPECT_EQ(arch_for("sm_90", {114, 0, 0, 0}), "sm_90+sms114+gbs3350+l2mib50+mhz1830");
}

std::vector<language::Step> steps_for(std::string_view arch) {
  const language::Kernel kernel =
      kernel_of(
          "kernel k(A: float32[1024, 1024], B: float32[1024, 1024]) -> (C: float32[1024, 1024]) "
          "{ C[i, j] = sum[k < 1024](A[i, k] * B[k, j]) }")
          .kernel;
  return choose_schedule(kernel, {}, {TargetKind::Cuda, std::string(arch)}, {}).steps;
}

std::vector<int64_t> factors_for(std::string_view arch) {
  std::vector<int64_t> factors;
  for (const language::Step& step : steps_for(arch))
    factors.insert(factors.end(), step.factors.begin(), step.factors.end());
  return factors;
}

/// 1024 x 1024 sums in tiles for 58 multiprocessors are too few tiles for 142.
TEST(GpuMachine, DecidesWhatATileIs) { EXPECT_NE(factors_for("sm_89"), factors_for("sm_89+l40s")); }

}  // namespace
}  // namespace kiln::testing
