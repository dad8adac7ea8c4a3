#include "runtime/core/cpu_features.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/X86TargetParser.h>

#include "compiler/codegen/cpu_artifact.h"
#include "runtime/core/cpu_name.h"

namespace kiln::testing {
namespace {

/// What CPUs have that no code of ours may use: every x86-64 has it, it belongs to the operating
/// system, or there is no way to ask for it but by its own intrinsic.
const std::set<std::string> kNotOfCode = {
    "64bit",     "64bit-mode", "cldemote",  "clflushopt", "clwb",      "clzero",      "cmov",
    "cmpccxadd", "cx8",        "enqcmd",    "evex512",    "fsgsbase",  "fxsr",        "hreset",
    "invpcid",   "kl",         "lwp",       "mmx",        "movdir64b", "movdiri",     "mwaitx",
    "pconfig",   "pku",        "prefetchi", "ptwrite",    "raoint",    "rdpid",       "rdpru",
    "rdrnd",     "rdseed",     "rtm",       "serialize",  "sgx",       "shstk",       "sse",
    "sse2",      "tsxldtrk",   "uintr",     "usermsr",    "waitpkg",   "wbnoinvd",    "widekl",
    "x87",       "xsave",      "xsavec",    "xsaveopt",   "xsaves",    "amx-complex", "3dnow",
    "3dnowa",    "avx512er",   "avx512pf",  "prefetchwt1"};

TEST(CpuFeatures, HaveAllThatCodeOfAnyCpuMayUse) {
  llvm::SmallVector<llvm::StringRef, 128> names;
  llvm::X86::fillValidCPUArchList(names, /*Only64Bit=*/true);
  for (const llvm::StringRef name : names) {
    llvm::SmallVector<llvm::StringRef, 64> features;
    llvm::X86::getFeaturesForCPU(name, features);
    for (const llvm::StringRef feature : features) {
      EXPECT_TRUE(is_code_feature(feature.str()) || kNotOfCode.contains(feature.str()))
          << feature.str() << " of " << name.str();
    }
  }
}

TEST(CpuFeatures, AreThoseThatLlvmFindsOnThisHost) {
  int compared = 0;
  for (const auto& feature : llvm::sys::getHostCPUFeatures()) {
    const std::string name = feature.getKey().str();
    if (!is_code_feature(name)) continue;
    ++compared;
    EXPECT_EQ(lacking_features(std::vector{name}), feature.getValue() ? "" : name);
  }
  EXPECT_GT(compared, 40);
}

TEST(CpuFeatures, AreNamedAsFarAsASentenceGoes) {
  const std::vector<std::string> none = {"a", "b", "c", "d"};
  EXPECT_EQ(lacking_features(none), "a, b, c, d");
  const std::vector<std::string> more = {"a", "b", "c", "d", "e", "f"};
  EXPECT_EQ(lacking_features(more), "a, b, c, d and 2 more");
  EXPECT_EQ(lacking_features({}), "");
}

TEST(CpuFeatures, OfAnArchGoWithItsArtifacts) {
  const std::vector<std::string> level = code_features("x86-64-v3");
  for (const char* feature : {"avx2", "fma", "bmi2"})
    EXPECT_TRUE(std::ranges::count(level, feature) == 1) << feature;
  EXPECT_EQ(std::ranges::count(level, "avx512f"), 0);
  EXPECT_EQ(std::ranges::count(code_features("x86-64-v4+avx512vnni"), "avx512vnni"), 1);
  EXPECT_EQ(lacking_features(code_features(own_cpu())), "");
}

/// Virtual machines hide what is the operating system's, as mwaitx; the CPU is the same.
TEST(CpuFeatures, ThatNoCodeUsesDoNotRenameTheHost) {
  const std::string name = llvm::sys::getHostCPUName().str();
  const bool can_run = lacking_features(code_features(name)).empty();
  EXPECT_EQ(host_can_run(name), can_run);
  EXPECT_EQ(own_cpu().starts_with("x86-64"), !can_run) << own_cpu() << " of " << name;
}

}  // namespace
}  // namespace kiln::testing
