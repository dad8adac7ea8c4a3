#include "compiler/autoschedule/recognise/machine.h"

#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

using autoschedule::Machine;
using autoschedule::machine_of;
using autoschedule::text_of;

TEST(Machine, IsThatOfTheCpuOfTheName) {
  const Machine zen = machine_of("znver4");
  EXPECT_EQ(zen.name, "Zen 4");
  EXPECT_EQ(zen.vectors.bytes, 64);
  EXPECT_EQ(zen.l1_bytes, 32 * 1024);
  EXPECT_EQ(machine_of("cascadelake").name, "Skylake server");
}

// As Arm's manuals have them: 4 vectors of NEON a cycle, 64 KiB of L1.
TEST(Machine, IsThatOfANeoverse) {
  for (const char* name : {"neoverse-v1", "neoverse-v2"}) {
    const Machine neoverse = machine_of(name);
    EXPECT_EQ(neoverse.vectors, (ir::VectorUnit{16, 32, true, true})) << name;
    EXPECT_EQ(neoverse.multiply_adds, 4) << name;
    EXPECT_EQ(neoverse.l1_bytes, 64 * 1024) << name;
    EXPECT_EQ(neoverse.l1_ways, 4) << name;
    EXPECT_FALSE(neoverse.has_masks()) << name;
  }
  EXPECT_EQ(machine_of("neoverse-v1").latency, 4);
  EXPECT_EQ(machine_of("neoverse-v2").latency, 2);
}

TEST(Machine, OfAnUnknownCpuIsTheLeastOfItsVectors) {
  EXPECT_EQ(machine_of("znver9").name, "x86-64-v2");
  EXPECT_EQ(machine_of("graniterapids").name, "x86-64-v4");
  EXPECT_EQ(machine_of("alderlake").name, "x86-64-v3");
  EXPECT_TRUE(machine_of("alderlake").vectors.adds_bytes);
}

TEST(Machine, TakesFeaturesFromTheName) {
  const Machine level = machine_of("x86-64-v4+avx512vnni");
  EXPECT_EQ(level.name, "x86-64-v4");
  EXPECT_TRUE(level.vectors.adds_bytes);
  EXPECT_FALSE(level.vectors.adds_halves);
}

TEST(Machine, IsALineForPeople) {
  EXPECT_EQ(text_of(machine_of("znver3")),
            "Zen 3: 16 vectors of 32 bytes, 2 multiply-adds a cycle of 4 cycles each, 4 "
            "operations and 2 loads a cycle, L1 32 KiB of 8 ways, L2 512 KiB of 8 ways, "
            "32 and 23 bytes a cycle from L2 and L3, 6 from memory and 8 for all cores, 64 pages "
            "in the TLB, 12000 cycles until others are awake (LLVM's X86ScheduleZnver3; caches: "
            "meterpreter.org on Zen 4)");
}

}  // namespace
}  // namespace kiln::testing
