/// Definitions of any size have an automatic schedule on every CPU and GPU that is planned for, not
/// on that of the tests' host alone.
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/autoschedule/choose/sketch_space.h"
#include "compiler/lower.h"
#include "tests/support/kernels.h"
#include "tests/support/random.h"

namespace kiln::testing {
namespace {

const std::vector<Target> kTargets = {
    {TargetKind::Llvm, "x86-64-v2"},      {TargetKind::Llvm, "x86-64-v3"},
    {TargetKind::Llvm, "x86-64-v4"},      {TargetKind::Llvm, "haswell"},
    {TargetKind::Llvm, "skylake-avx512"}, {TargetKind::Llvm, "icelake-server"},
    {TargetKind::Llvm, "sapphirerapids"}, {TargetKind::Llvm, "znver2"},
    {TargetKind::Llvm, "znver3"},         {TargetKind::Llvm, "znver4"},
    {TargetKind::Llvm, "znver5"},         {TargetKind::Llvm, "znver4+cores64"},
    {TargetKind::Cuda, "sm_75"},          {TargetKind::Cuda, "sm_90"},
};

/// Of 1 to `most`, small ones as often as large ones.
int extent(Random& random, int most) {
  return static_cast<int>(std::exp2(std::log2(most) * random.below(1001) / 1000));
}

/// Placeholders of a text: {m}, {k}, {n} are extents, {type} an element type.
const std::vector<std::string> kTexts = {
    "kernel k(X: {type}[{k}, {n}]) -> (S: {type}[{n}]) {{ S[j] = sum[i < {k}](X[i, j]) }}",
    "kernel k(X: {type}[{m}, {k}, {n}]) -> (S: {type}[{m}, {n}]) {{\n"
    "  S[i, j] = max[l < {k}](X[i, l, j]) }}",
    "kernel k(X: {type}[{m}, {k}]) -> (S: {type}[{m}]) {{ S[i] = sum[j < {k}](X[i, j] * X[i, j]) "
    "}}",
    "kernel k(X: {type}[{m}, {n}]) -> (S: {type}[]) {{ S[] = min[i < {m}, j < {n}](X[i, j]) }}",
    "kernel k(A: {type}[{m}, {k}], B: {type}[{k}, {n}]) -> (C: {type}[{m}, {n}]) {{\n"
    "  C[i, j] = sum[l < {k}](A[i, l] * B[l, j]) }}",
    "kernel k(A: {type}[{k}, {m}], B: {type}[{n}, {k}]) -> (C: {type}[{m}, {n}]) {{\n"
    "  C[i, j] = sum[l < {k}](A[l, i] * B[j, l]) }}",
    "kernel k(A: {type}[{m}, {k}], B: {type}[{n}, {k}]) -> (C: {type}[{m}, {n}]) {{\n"
    "  C[i, j] = sum[l < {k}](A[i, l] * B[j, l]) }}",
    "kernel k(X: {type}[{m}, {n}]) -> (Y: {type}[{n}, {m}]) {{ Y[j, i] = X[i, j] + X[i, j] }}",
    "kernel k(X: {type}[{m}, {n}]) -> (Y: {type}[{m}, {n}]) {{\n"
    "  S: {type}[{m}]\n  S[i] = sum[j < {n}](X[i, j])\n  Y[i, j] = X[i, j] - S[i] }}",
    "kernel k(X: {type}[{m}, {n}]) -> (Y: {type}[{m}, {n}]) {{\n"
    "  scan t {{\n    Y[0, j] = X[0, j]\n    Y[t, j] = Y[t - 1, j] + X[t, j]\n  }} }}",
};

std::string drawn_text(Random& random) {
  static const std::vector<std::string> kTypes = {"float32", "float64", "int32", "int8", "float16"};
  return fmt::format(fmt::runtime(random.pick(kTexts)), fmt::arg("type", random.pick(kTypes)),
                     fmt::arg("m", extent(random, 4096)), fmt::arg("k", extent(random, 4096)),
                     fmt::arg("n", extent(random, 4096)));
}

TEST(ChooseEverywhere, EachSketchHasASchedule) {
  constexpr int kDrawn = 400;
  Random random(fuzz_seed());
  for (int i = 0; i < kDrawn; ++i) {
    const std::string text = drawn_text(random);
    const language::Kernel kernel = kernel_of(text).kernel;
    for (const Target& target : kTargets) {
      SCOPED_TRACE(target.arch + ": " + text);
      const SketchSpace space(kernel, {}, target, {});
      for (const autoschedule::Candidate& candidate : autoschedule::each_sketch(space.stages()))
        EXPECT_NO_THROW(space.schedule(candidate));
    }
  }
}

/// 95 columns are one tile of registers with AVX-512, which is no power of two.
TEST(ChooseEverywhere, AnOddNumberOfColumnsIsATile) {
  const language::Kernel kernel =
      kernel_of(
          "kernel k(X: float32[224, 95]) -> (S: float32[95]) { S[j] = sum[i < 224](X[i, j]) }")
          .kernel;
  const SketchSpace space(kernel, {}, {TargetKind::Llvm, "znver4"}, {});
  const autoschedule::Parameter& lanes = space.stages().at(0).sketches.at(0).parameters.at(0);
  EXPECT_EQ(lanes.preferred, 95);
  EXPECT_EQ(lanes.values, (std::vector<int64_t>{47, 95}));
}

/// Four products of bytes, or two of bfloat16, are one instruction, whatever is left of the sum.
TEST(ChooseEverywhere, ProductsOfOddSumsAreAddedInGroups) {
  for (const std::string type : {"int8", "uint8", "bfloat16"}) {
    const std::string sum = type == "bfloat16" ? "float32" : "int32";
    for (const int steps : {197, 261, 1597}) {
      const language::Kernel kernel =
          kernel_of(fmt::format("kernel k(A: {0}[16, {2}], B: {0}[{2}, 80]) -> (C: {1}[16, 80]) {{ "
                                "C[i, j] = sum[l < {2}]({1}(A[i, l]) * {1}(B[l, j])) }}",
                                type, sum, steps))
              .kernel;
      const Target target{TargetKind::Llvm, "znver4"};
      const std::string loops = lowered_text(kernel, choose_schedule(kernel, {}, target, {}),
                                             target, {}, "add_in_groups");
      EXPECT_NE(loops.find("dot("), std::string::npos) << loops;
    }
  }
}

}  // namespace
}  // namespace kiln::testing
