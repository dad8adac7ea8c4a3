#include "runtime/cuda/compute_capability.h"

#include <gtest/gtest.h>

namespace kiln::cuda {
namespace {

TEST(ComputeCapability, IsWrittenAsAnArchitecture) {
  EXPECT_EQ(arch_of({8, 6}), "sm_86");
  EXPECT_EQ(arch_of({12, 0}), "sm_120");
}

TEST(ComputeCapability, CodeRunsOnItsOwnMinorNumberAndLaterOnes) {
  EXPECT_TRUE(runs_on("sm_80", {8, 0}));
  EXPECT_TRUE(runs_on("sm_80", {8, 6}));
  EXPECT_FALSE(runs_on("sm_86", {8, 0}));
  EXPECT_TRUE(runs_on("sm_120", {12, 1}));
}

TEST(ComputeCapability, CodeOfAnotherMajorNumberDoesNotRun) {
  EXPECT_FALSE(runs_on("sm_80", {9, 0}));
  EXPECT_FALSE(runs_on("sm_90", {8, 9}));
  EXPECT_FALSE(runs_on("sm_100", {12, 0}));
}

TEST(ComputeCapability, CodeOfOneArchitectureAloneRunsOnThatOne) {
  EXPECT_TRUE(runs_on("sm_90a", {9, 0}));
  EXPECT_FALSE(runs_on("sm_100a", {10, 3}));
  EXPECT_TRUE(runs_on("sm_100f", {10, 3}));
  EXPECT_FALSE(runs_on("sm_103f", {10, 0}));
}

TEST(ComputeCapability, PtxIsCompiledForItsOwnNumberAndAllLaterOnes) {
  EXPECT_TRUE(compiles_on("sm_80", {8, 0}));
  EXPECT_TRUE(compiles_on("sm_80", {9, 0}));
  EXPECT_TRUE(compiles_on("sm_90", {12, 0}));
  EXPECT_FALSE(compiles_on("sm_86", {8, 0}));
  EXPECT_FALSE(compiles_on("sm_90", {8, 9}));
  EXPECT_FALSE(compiles_on("sm_90a", {9, 0}));
  EXPECT_FALSE(compiles_on("loops", {9, 0}));
}

TEST(ComputeCapability, WhatIsNoArchitectureRunsNowhere) {
  for (const char* arch : {"", "sm_", "sm_9", "sm_x0", "90", "znver5", "sm_90b"}) {
    EXPECT_FALSE(runs_on(arch, {9, 0})) << arch;
  }
}

}  // namespace
}  // namespace kiln::cuda
