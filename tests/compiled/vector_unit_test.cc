#include "compiler/ir/vector_unit.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>
#include <llvm/TargetParser/X86TargetParser.h>

namespace kiln::testing {
namespace {

using ir::vector_unit_of;
using ir::VectorUnit;

/// By the features that LLVM lists for a CPU, of which those that others imply may be missing.
VectorUnit unit_by_features(llvm::StringRef cpu) {
  llvm::SmallVector<llvm::StringRef, 64> features;
  llvm::X86::getFeaturesForCPU(cpu, features);
  const auto has = [&](llvm::StringRef beginning) {
    return std::ranges::any_of(features,
                               [&](llvm::StringRef f) { return f.starts_with(beginning); });
  };
  VectorUnit unit = {.bytes = 16, .registers = 16};
  if (has("avx512")) {
    unit = {.bytes = 64, .registers = 32};
  } else if (has("avx") || has("fma") || has("vaes")) {
    unit = {.bytes = 32, .registers = 16};
  }
  unit.adds_bytes = has("avx512vnni") || has("avxvnni");
  unit.adds_halves = has("avx512bf16");
  unit.multiplies_tiles_of_bytes = has("amx-int8");
  unit.multiplies_tiles_of_halves = has("amx-bf16");
  unit.multiplies_tiles_of_float16 = has("amx-fp16");
  return unit;
}

TEST(VectorUnit, IsThatOfEveryCpuThatLlvmKnows) {
  llvm::SmallVector<llvm::StringRef, 128> names;
  llvm::X86::fillValidCPUArchList(names, /*Only64Bit=*/true);
  EXPECT_GT(names.size(), 60u);
  for (const llvm::StringRef name : names)
    EXPECT_EQ(vector_unit_of(name.str()), unit_by_features(name)) << name.str();
}

TEST(VectorUnit, OfAnUnknownCpuIsWhatEveryCpuHas) {
  EXPECT_EQ(vector_unit_of("znver9"), (VectorUnit{.bytes = 16, .registers = 16}));
  EXPECT_EQ(vector_unit_of("znver5+avx512bf16"), (VectorUnit{64, 32, true, true}));
  EXPECT_EQ(vector_unit_of("x86-64-v4+avx512vnni"), (VectorUnit{64, 32, true, false}));
  EXPECT_EQ(vector_unit_of("x86-64-v4+amx-int8"), (VectorUnit{64, 32, false, false, true, false}));
}

}  // namespace
}  // namespace kiln::testing
