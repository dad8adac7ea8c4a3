// What precedes a product element by element is computed where blocks fetch the factor: one launch,
// and no factor in memory; or it is stored first, where that is predicted to take less.
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/sketch_space.h"
#include "compiler/ir/launch.h"
#include "compiler/ir/print.h"
#include "tests/support/cuda_text.h"
#include "tests/support/gpu_run.h"
#include "tests/support/kernels.h"

namespace kiln::testing::prologues {
namespace {

struct Case {
  const char* name;
  const char* text;
  std::vector<int64_t> sizes = {};
  size_t launches = 1;
  const char* arch = "sm_90";
};
std::ostream& operator<<(std::ostream& stream, const Case& test) { return stream << test.name; }

const Case kCases[] = {
    {"a_function_and_a_scale",
     R"(kernel k(A: float32[70, 24], s: float32[24], B: float32[24, 68]) -> (C: float32[70, 68]) {
       R: float32[70, 24]
       R[i, k] = max(A[i, k], 0.0) * s[k]
       C[i, j] = sum[k < 24](R[i, k] * B[k, j]) })"},
    {"of_sizes_of_a_call",
     R"(kernel k(A: float32[n, l], B: float32[m, l]) -> (C: float32[n, m]) {
       R: float32[m, l]
       R[j, k] = B[j, k] * 0.5 + 1
       C[i, j] = sum[k < l](A[i, k] * R[j, k]) })",
     {40, 37, 66}},
    {"both_factors",
     R"(kernel k(A: float32[66, 33], B: float32[33, 65], s: float32[65]) -> (C: float32[66, 65]) {
       R: float32[66, 33]
       R[i, k] = select(A[i, k] > 0, A[i, k], A[i, k] * 0.1)
       S: float32[33, 65]
       S[k, j] = B[k, j] + s[j]
       C[i, j] = sum[k < 33](R[i, k] * S[k, j]) })"},
    {"several_stages",
     R"(kernel k(A: float32[64, 24], m: float32[64], B: float32[24, 64]) -> (C: float32[64, 64]) {
       R: float32[64, 24]
       R[i, k] = A[i, k] - m[i]
       S: float32[64, 24]
       S[i, k] = R[i, k] * R[i, k]
       C[i, j] = sum[k < 24](S[i, k] * B[k, j]) })"},
    {"by_tensor_cores",
     R"(kernel k(A: float16[80, 32], s: float16[32], B: float16[32, 72]) -> (C: float32[80, 72]) {
       R: float16[80, 32]
       R[i, k] = max(A[i, k], float16(0)) * s[k]
       C[i, j] = sum[k < 32](float32(R[i, k]) * float32(B[k, j])) })"},
    {"weights_of_bytes",
     R"(kernel k(A: float16[80, 64], W: int8[72, 64], s: float32[72]) -> (C: float32[80, 72]) {
       R: float16[72, 64]
       R[j, k] = float16(float32(W[j, k]) * s[j])
       C[i, j] = sum[k < 64](float32(A[i, k]) * float32(R[j, k])) })"},
    {"in_bytes",
     R"(kernel k(A: float32[64, 64], B: int8[64, 72]) -> (C: int32[64, 72]) {
       R: int8[64, 64]
       R[i, k] = int8(max(min(A[i, k] * 16.0, 127.0), -127.0))
       C[i, j] = sum[k < 64](int32(R[i, k]) * int32(B[k, j])) })"},
    {"both_by_tensor_cores",
     R"(kernel k(A: bfloat16[64, 67], B: bfloat16[67, 64]) -> (C: float32[64, 64]) {
       R: bfloat16[64, 67]
       R[i, k] = max(A[i, k], bfloat16(0))
       S: bfloat16[67, 64]
       S[k, j] = B[k, j] * bfloat16(2)
       C[i, j] = sum[k < 67](float32(R[i, k]) * float32(S[k, j])) })"},
    {"of_a_convolution",
     R"(kernel k(X: float32[2, 3, 16, 17], F: float32[40, 3, 3, 3]) -> (Y: float32[2, 40, 7, 8]) {
       R: float32[2, 3, 16, 17]
       R[b, c, y, x] = max(X[b, c, y, x], 0.0)
       Y[b, o, i, j] = sum[k < 3, p < 3, q < 3](R[b, k, i*2 + p, j*2 + q] * F[o, k, p, q]) })"},
    {"padded_of_a_convolution_by_tensor_cores",
     R"(kernel k(X: float16[2, 8, 5, 16], F: float16[3, 3, 16, 64]) -> (Y: float32[2, 8, 5, 64]) {
       P: float16[2, 10, 7, 16]
       P[n, y, x, c] = if_then_else(y >= 1 && y < 9 && x >= 1 && x < 6,
                                    max(X[n, y - 1, x - 1, c], float16(0)), float16(0))
       Y[n, y, x, f] = sum[r < 3, s < 3, c < 16](float32(P[n, y + r, x + s, c]) *
                                                 float32(F[r, s, c, f])) })"},
    {"with_an_epilogue",
     R"(kernel k(A: float16[80, 32], B: float16[32, 72], c: float32[72]) -> (C: float16[80, 72]) {
       R: float16[80, 32]
       R[i, k] = max(A[i, k], float16(0))
       S: float32[80, 72]
       S[i, j] = sum[k < 32](float32(R[i, k]) * float32(B[k, j]))
       C[i, j] = float16(S[i, j] + c[j]) })"},
    {"inside_of_a_sum",
     R"(kernel k(A: float32[70, 24], s: float32[24], B: float32[24, 68]) -> (C: float32[70, 68]) {
       C[i, j] = sum[k < 24](max(A[i, k], 0.0) * s[k] * B[k, j]) })"},
    {"inside_of_a_sum_by_tensor_cores",
     R"(kernel k(A: float16[80, 64], W: int8[72, 64], s: float32[72]) -> (C: float16[80, 72]) {
       C[i, j] = float16(sum[k < 64](float32(max(A[i, k], float16(0))) *
                                     float32(float16(float32(W[j, k]) * s[j]))) + 1) })"},
    {"bits_of_what_is_computed_inside_of_a_sum",
     R"(kernel k(A: float32[64, 40], B: float32[40, 72]) -> (C: float32[64, 72]) {
       C[i, j] = sum[k < 40](tf32(A[i, k] * 3.0) * tf32(max(B[k, j], 0.0))) })"},
    {"inside_of_a_convolution_by_tensor_cores",
     R"(kernel k(X: float16[2, 10, 7, 16], F: float16[3, 3, 16, 64]) -> (Y: float32[2, 8, 5, 64]) {
       Y[n, y, x, f] = sum[r < 3, s < 3, c < 16](
         float32(max(X[n, y + r, x + s, c], float16(0))) * float32(F[r, s, c, f])) })"},
    {"of_a_sum_in_parts",
     R"(kernel k(A: float16[64, 2048], B: float16[2048, 64]) -> (C: float32[64, 64]) {
       R: float16[64, 2048]
       R[i, k] = A[i, k] * float16(2)
       C[i, j] = sum[k < 2048](float32(R[i, k]) * float32(B[k, j])) })",
     {},
     2},
};

class Prologues : public ::testing::TestWithParam<Case> {};

TEST_P(Prologues, AreComputedWhereTheyAreFetched) {
  const language::TextKernel text = kernel_of(GetParam().text);
  const ir::Kernel loops = gpu_loops(text, {}, GetParam().arch);
  const std::string printed = ir::print(loops);
  EXPECT_EQ(ir::launched_statements(loops.body).size(), GetParam().launches) << printed;
  EXPECT_NE(printed.find("scope(shared)"), std::string::npos) << printed;
  EXPECT_EQ(gpu_difference(text, loops, GetParam().sizes), "") << printed;
}

INSTANTIATE_TEST_SUITE_P(All, Prologues, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

/// Each way to compute some of them and store the others is a sketch, and right.
TEST(Prologues, AreStoredByOtherSketches) {
  const Target target{TargetKind::Cuda, "sm_90"};
  for (const char* const text :
       {R"(kernel k(A: float32[66, 33], B: float32[33, 65]) -> (C: float32[66, 65]) {
          R: float32[66, 33]
          R[i, k] = A[i, k] * 2
          S: float32[33, 65]
          S[k, j] = B[k, j] + 1
          C[i, j] = sum[k < 33](R[i, k] * S[k, j]) })",
        R"(kernel k(A: float16[68, 80], B: float16[80, 72]) -> (C: float32[68, 72]) {
          R: float16[68, 80]
          R[i, k] = A[i, k] * float16(2)
          S: float16[80, 72]
          S[k, j] = B[k, j] + float16(1)
          C[i, j] = sum[k < 80](float32(R[i, k]) * float32(S[k, j])) })"}) {
    const language::TextKernel kernel = kernel_of(text);
    const SketchSpace space(kernel.kernel, {}, target, {});
    ASSERT_EQ(space.stages().size(), 1U);
    std::set<std::string> choices;
    std::set<size_t> launches;
    for (uint32_t sketch = 0; sketch < space.stages()[0].sketches.size(); ++sketch) {
      const autoschedule::Sketch& tile = space.stages()[0].sketches[sketch];
      // One shape of each: all take the interpreter a quarter of a minute.
      if (!choices.insert(tile.name.substr(tile.name.find(", R "))).second) continue;
      LoweringObserver silent;
      const ir::Kernel loops = lower(kernel.kernel, space.schedule({{{sketch, tile.preferred()}}}),
                                     target, {}, Layout::Compact, silent);
      EXPECT_EQ(gpu_difference(kernel, loops, {}), "") << tile.name;
      launches.insert(ir::launched_statements(loops.body).size());
    }
    EXPECT_EQ(choices.size(), 4U);
    EXPECT_EQ(launches, (std::set<size_t>{1, 2, 3}));
  }
}

/// The sketch that is taken of a kernel that has one stage to schedule.
std::string taken(const std::string& text, std::string_view arch) {
  const language::TextKernel kernel = kernel_of(text);
  const SketchSpace space(kernel.kernel, {}, {TargetKind::Cuda, std::string(arch)}, {});
  EXPECT_EQ(space.stages().size(), 1U);
  return space.stages()[0].sketches[0].name;
}

std::string product_of_halves(int size, std::string_view value) {
  return fmt::format(
      "kernel k(A: float16[{0}, {0}], B: float16[{0}, {0}]) -> (C: float32[{0}, {0}]) {{"
      " R: float16[{0}, {0}] R[i, k] = {1}"
      " C[i, j] = sum[k < {0}](float32(R[i, k]) * float32(B[k, j])) }}",
      size, value);
}

/// 32 blocks would compute each element of a large factor; tensor cores leave time for little.
TEST(Prologues, ThatAreLongAreStoredBeforeProductsThatFetchThemOften) {
  const std::string few = "max(A[i, k], float16(0))";
  const std::string many = "A[i, k] * (float16(1) + erf(A[i, k]) * tanh(A[i, k]) * exp(A[i, k]))";
  EXPECT_EQ(taken(product_of_halves(4096, few), "sm_80"),
            "matrix instructions, 128 x 256 a block, R computed in it");
  EXPECT_EQ(taken(product_of_halves(4096, many), "sm_80"),
            "matrix instructions, 256 x 128 a block, R stored before");
}

/// Whether a product of float32 with this factor has such a choice.
bool has_choice(std::string_view choice, std::string_view value, int rows, int steps, int columns,
                std::string_view arch) {
  const language::TextKernel kernel = kernel_of(fmt::format(
      "kernel k(A: float32[{0}, {1}], B: float32[{1}, {2}]) -> (C: float32[{0}, {2}]) {{"
      " R: float32[{0}, {1}] R[i, k] = {3}"
      " C[i, j] = sum[k < {1}](R[i, k] * B[k, j]) }}",
      rows, steps, columns, value));
  const SketchSpace space(kernel.kernel, {}, {TargetKind::Cuda, std::string(arch)}, {});
  return std::ranges::any_of(space.stages(), [&](const autoschedule::StageSketches& stage) {
    return stage.sketches[0].name.find(choice) != std::string::npos;
  });
}

/// Lanes that multiply compute the factor, too, which 48 and more blocks would do anew.
TEST(Prologues, TakeLanesFromProducts) {
  const std::string gelu = "A[i, k] * 0.5 * (1.0 + erf(A[i, k] * 0.70710678))";
  EXPECT_TRUE(has_choice("R stored before", gelu, 512, 768, 3072, "sm_80"));
  EXPECT_TRUE(has_choice("R stored before", gelu, 512, 3072, 768, "sm_80"));
  EXPECT_TRUE(has_choice("R computed in it", "max(A[i, k], 0.0)", 512, 768, 3072, "sm_80"));
}

/// However often an element is read, it is loaded once, so that storing the factor takes two ways
/// through memory.
TEST(Prologues, LoadAnElementOnce) {
  const std::string gelu = "A[i, k] * (0.5 + 0.5 * tanh(A[i, k] + A[i, k] * A[i, k] * A[i, k]))";
  EXPECT_TRUE(has_choice("R stored before", gelu, 2048, 2048, 2048, "sm_89"));
}

/// Hardware copies the other factor meanwhile, into four memories that take turns.
TEST(Prologues, WaitInRegistersAsTheyAreLoaded) {
  const language::TextKernel text = kernel_of(product_of_halves(4096, "A[i, k] * float16(2)"));
  const std::string source = source_of(gpu_loops(text, {}, "sm_80"));
  EXPECT_EQ(count_in(source, "kiln_float16 R_shared_next["), 1U) << source;
  EXPECT_EQ(count_in(source, "kiln_await<2>();"), 5U) << source;
  // An iteration waits once: four that are written out, and the rest.
  EXPECT_EQ(count_in(source, "__syncthreads();"), 5U) << source;
  for (size_t at = source.find("R_shared_next[", source.find("R_shared_next[") + 1);
       at != std::string::npos; at = source.find("R_shared_next[", at + 1)) {
    const size_t line = source.rfind('\n', at) + 1;
    const std::string_view text_of_line(source.data() + line, source.find('\n', at) - line);
    const bool is_loaded = text_of_line.find("] = A_vector") != std::string_view::npos;
    const bool is_computed = text_of_line.find(" * ") > at - line &&
                             text_of_line.find("R_shared_vector") != std::string_view::npos;
    EXPECT_NE(is_loaded, is_computed) << text_of_line;
  }
}

/// Tensor cores want elements: what is computed of a factor inside of the sum is made a stage.
TEST(Prologues, InsideOfASumAreMultipliedByTensorCores) {
  for (const char* const text :
       {R"(kernel k(A: float16[80, 64], B: float16[64, 72]) -> (C: float32[80, 72]) {
          C[i, j] = sum[k < 64](float32(max(A[i, k], float16(0))) * float32(B[k, j])) })",
        R"(kernel k(A: float16[80, 64], W: int8[64, 72], s: float16[72]) -> (C: float32[80, 72]) {
          C[i, j] = sum[k < 64](float32(A[i, k]) * float32(float16(W[k, j]) * s[j])) })"}) {
    const std::string source = source_of(gpu_loops(kernel_of(text), {}, "sm_80"));
    EXPECT_NE(source.find("kiln_multiply<"), std::string::npos) << source;
    EXPECT_EQ(count_in(source, "__global__"), 1U);
  }
}

size_t launches_of(const char* text) {
  return ir::launched_statements(gpu_loops(kernel_of(text)).body).size();
}

/// What is made of sums is their epilogue, what others read too is stored for all, and elements
/// that lie across are turned by a launch that reads them side by side.
TEST(PrologueLeaves, WhatOthersNeed) {
  EXPECT_EQ(launches_of(R"(kernel k(A: float32[64, 64], B: float32[64, 64], D: float32[64, 64])
      -> (C: float32[64, 64]) {
    S: float32[64, 64]
    S[i, j] = sum[k < 64](A[i, k] * B[k, j])
    R: float32[64, 64]
    R[i, j] = max(S[i, j], 0.0)
    C[i, j] = sum[k < 64](R[i, k] * D[k, j]) })"),
            2U);
  EXPECT_EQ(launches_of(R"(kernel k(A: float32[64, 64], B: float32[64, 64])
      -> (C: float32[64, 64], R: float32[64, 64]) {
    R[i, j] = A[i, j] * 2
    C[i, j] = sum[k < 64](R[i, k] * B[k, j]) })"),
            2U);
  EXPECT_EQ(launches_of(R"(kernel k(A: float32[64, 64], B: float32[64, 64])
      -> (C: float32[64, 64]) {
    R: float32[64, 64]
    R[i, j] = A[j, i] * 2
    C[i, j] = sum[k < 64](R[i, k] * B[k, j]) })"),
            2U);
}

}  // namespace
}  // namespace kiln::testing::prologues
