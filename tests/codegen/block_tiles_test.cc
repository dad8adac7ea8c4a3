// Contractions get tiles in shared memory, without a step.
#include <gtest/gtest.h>

#include "compiler/ir/launch.h"
#include "compiler/ir/print.h"
#include "compiler/language/evaluate/evaluate.h"
#include "tests/support/gpu_run.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

struct Case {
  const char* name;
  const char* text;
  std::vector<std::vector<int64_t>> sizes;
};
std::ostream& operator<<(std::ostream& stream, const Case& test) { return stream << test.name; }

const Case kTiled[] = {
    {"matmul",
     R"(kernel k(A: float32[n, l], B: float32[l, m]) -> (C: float32[n, m]) {
       C[i, j] = sum[k < l](A[i, k] * B[k, j]) })",
     {{70, 20, 66}, {64, 16, 64}, {1, 3, 2}, {5, 0, 7}}},
    {"dense",
     R"(kernel k(A: float32[n, l], W: float32[m, l]) -> (C: float32[n, m]) {
       C[i, j] = sum[k < l](A[i, k] * W[j, k]) })",
     {{65, 17, 3}}},
    {"both_transposed",
     R"(kernel k(A: float32[l, n], B: float32[m, l]) -> (C: float32[n, m]) {
       C[i, j] = sum[k < l](A[k, i] * B[j, k]) })",
     {{5, 40, 70}}},
    {"batches",
     R"(kernel k(A: float32[b, n, l], B: float32[b, l, m]) -> (C: float32[b, n, m]) {
       C[a, i, j] = sum[k < l](A[a, i, k] * B[a, k, j]) })",
     {{3, 20, 9, 65}}},
    {"of_constant_sizes",
     R"(kernel k(A: float64[40, 33], B: float64[33, 100]) -> (C: float64[40, 100]) {
       C[i, j] = sum[k < 33](A[i, k] * B[k, j]) })",
     {{}}},
    {"integers_in_a_wider_sum",
     R"(kernel k(A: int8[n, l], B: int8[l, m]) -> (C: int32[n, m]) {
       C[i, j] = sum[k < l](int32(A[i, k]) * int32(B[k, j])) })",
     {{33, 20, 66}}},
    {"convolution",
     R"(kernel k(X: float32[n, c, 9, w], F: float32[m, c, 3, 3]) -> (Y: float32[n, m, 7, w - 2]) {
       Y[b, o, i, j] = sum[k < c, p < 3, q < 3](X[b, k, i + p, j + q] * F[o, k, p, q]) })",
     {{2, 5, 34, 6}}},
};

class BlockTiles : public ::testing::TestWithParam<Case> {};

TEST_P(BlockTiles, ComputeWhatTheDefinitionSays) {
  const language::TextKernel text = kernel_of(GetParam().text);
  const ir::Kernel loops = gpu_loops(text);
  const std::string printed = ir::print(loops);
  EXPECT_EQ(ir::launched_statements(loops.body).size(), 1u) << printed;
  EXPECT_NE(printed.find("scope(shared)"), std::string::npos) << printed;
  for (const std::vector<int64_t>& sizes : GetParam().sizes)
    EXPECT_EQ(gpu_difference(text, loops, sizes), "");
}

INSTANTIATE_TEST_SUITE_P(All, BlockTiles, ::testing::ValuesIn(kTiled),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(BlockTiles, OfAProductInsideAnExpressionAreALaunchOfTheirOwn) {
  const language::TextKernel text = kernel_of(
      R"(kernel k(A: float32[n, l], B: float32[l, m], c: float32[m]) -> (C: float32[n, m]) {
    C[i, j] = max(sum[k < l](A[i, k] * B[k, j]) + c[j], 0) })");
  const ir::Kernel loops = gpu_loops(text);
  EXPECT_EQ(ir::launched_statements(loops.body).size(), 2u) << ir::print(loops);
  EXPECT_NE(ir::print(loops).find("scope(shared)"), std::string::npos) << ir::print(loops);
  EXPECT_EQ(gpu_difference(text, loops, {40, 20, 66}), "");
}

void expect_no_tiles(const char* text) {
  const std::string loops = ir::print(gpu_loops(kernel_of(text)));
  EXPECT_EQ(loops.find("scope(shared)"), std::string::npos) << loops;
}

TEST(BlockTilesLeave, WhatIsSmallerThanATile) {
  expect_no_tiles(R"(kernel k(A: float32[n, l], B: float32[l, 8]) -> (C: float32[n, 8]) {
    C[i, j] = sum[k < l](A[i, k] * B[k, j]) })");
}

TEST(BlockTilesLeave, ProductsOfATensorWithItself) {
  expect_no_tiles(R"(kernel k(A: float32[n, l]) -> (C: float32[n, n]) {
    C[i, j] = sum[k < l](A[i, k] * A[j, k]) })");
}

TEST(BlockTilesLeave, WindowsOfAnySize) {
  expect_no_tiles(R"(kernel k(X: float32[c, w], F: float32[m, c, s]) -> (Y: float32[m, w - s + 1]) {
    Y[o, j] = sum[k < c, q < s](X[k, j + q] * F[o, k, q]) })");
}

// The sums are added in the order of the definition.
TEST(BlockTiles, AreThoseOfStrictToo) {
  const language::TextKernel text = kernel_of(kTiled[0].text);
  const std::string loops = ir::print(gpu_loops(text, CompileOptions{.strict = true}));
  EXPECT_NE(loops.find("scope(shared)"), std::string::npos) << loops;
}

}  // namespace
}  // namespace kiln::testing
