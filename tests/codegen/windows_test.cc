// Windows that slide: what is around an image is read where it is needed, what is made of a result
// is computed with it, and a thread has neighbours that read the same lines.
#include <gtest/gtest.h>

#include "compiler/ir/launch.h"
#include "compiler/ir/print.h"
#include "tests/support/gpu_run.h"
#include "tests/support/kernels.h"

namespace kiln::testing::windows {
namespace {

struct Case {
  const char* name;
  const char* text;
  const char* lines;  // what a thread has of its results; none: one
};
std::ostream& operator<<(std::ostream& stream, const Case& test) { return stream << test.name; }

const Case kCases[] = {
    {"a_small_pool", R"(kernel k(X: float32[2, 3, 9, 10]) -> (Y: float32[2, 3, 5, 5]) {
       P: float32[2, 3, 11, 12]
       P[n, c, y, x] = if_then_else(y >= 1 && y < 10 && x >= 1 && x < 11, X[n, c, y - 1, x - 1],
                                    -inf)
       Y[n, c, y, x] = max[r < 3, s < 3](P[n, c, y * 2 + r, x * 2 + s]) })",
     ""},
    {"a_mean_of_any_size", R"(kernel k(X: float32[n, 8, 8]) -> (Y: float32[n, 4, 4]) {
       S: float32[n, 4, 4]
       S[b, y, x] = sum[r < 2, s < 2](X[b, y * 2 + r, x * 2 + s])
       Y[b, y, x] = S[b, y, x] / 4.0 })",
     ""},
    {"a_stencil_of_a_padded_row", R"(kernel k(X: float32[70]) -> (Y: float32[70]) {
       P: float32[72]
       P[i] = if_then_else(i >= 1 && i < 71, X[i - 1], 0.0)
       Y[i] = P[i] + P[i + 1] * 2.0 + P[i + 2] })",
     ""},
    {"four_lines_and_a_bias",
     R"(kernel k(X: float32[3, 16, 64, 64], W: float32[16, 3, 3], c: float32[16])
         -> (Y: float32[3, 16, 64, 64]) {
       P: float32[3, 16, 66, 66]
       P[n, f, y, x] = if_then_else(y >= 1 && y < 65 && x >= 1 && x < 65, X[n, f, y - 1, x - 1],
                                    0.0)
       S: float32[3, 16, 64, 64]
       S[n, f, y, x] = sum[r < 3, s < 3](P[n, f, y + r, x + s] * W[f, r, s])
       Y[n, f, y, x] = max(S[n, f, y, x] + c[f], 0.0) })",
     "S: float32[1, 1, 4, 1] scope(local)"},
    {"four_lines_inside_of_an_expression",
     R"(kernel k(X: float32[3, 16, 64, 66], W: float32[16, 3]) -> (Y: float32[3, 16, 64, 64]) {
       P: float32[3, 16, 64, 66]
       P[n, f, y, x] = if_then_else(y >= 1, X[n, f, y, x], 0.0)
       Y[n, f, y, x] = max(sum[r < 1, s < 3](P[n, f, y + r, x + s] * W[f, s]), 0.0) })",
     "Y.sum: float32[1, 1, 4, 1] scope(local)"},
    {"seven_lines_in_another_order",
     R"(kernel k(X: float32[12, 20, 36, 39]) -> (Y: float32[35, 12, 20, 37]) {
       S: float32[12, 20, 35, 37]
       S[n, c, y, x] = max[r < 2, s < 3](X[n, c, y + r, x + s])
       Y[y, n, c, x] = S[n, c, y, x] * 2.0 })",
     ""},
    {"seven_lines_by_themselves",
     R"(kernel k(X: float32[8, 40, 37, 41]) -> (S: float32[8, 40, 35, 39]) {
       S[n, c, y, x] = max[r < 3, s < 3](X[n, c, y + r, x + s]) })",
     "S.local: float32[1, 1, 7, 1] scope(local)"},
};

class Windows : public ::testing::TestWithParam<Case> {};

TEST_P(Windows, AreOneLaunch) {
  const language::TextKernel text = kernel_of(GetParam().text);
  const ir::Kernel loops = gpu_loops(text, {}, "sm_75");
  const std::string printed = ir::print(loops);
  EXPECT_EQ(ir::launched_statements(loops.body).size(), 1u) << printed;
  EXPECT_NE(printed.find(GetParam().lines), std::string::npos) << printed;
  const bool is_open = printed.find("float32[n,") != std::string::npos;
  EXPECT_EQ(gpu_difference(text, loops, is_open ? std::vector<int64_t>{3} : std::vector<int64_t>{}),
            "")
      << printed;
}

INSTANTIATE_TEST_SUITE_P(All, Windows, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// What is computed for two, or is more than a choice, keeps its memory.
TEST(WindowsLeave, WhatTwoReadOrTakesLonger) {
  const ir::Kernel loops =
      gpu_loops(kernel_of("kernel k(X: float32[70]) -> (Y: float32[70], Z: float32[70]) {\n"
                          "  P: float32[72]\n"
                          "  P[i] = if_then_else(i >= 1 && i < 71, X[i - 1], 0.0)\n"
                          "  Y[i] = P[i] + P[i + 2]\n"
                          "  Z[i] = P[i] - P[i + 2]\n}"));
  EXPECT_EQ(ir::launched_statements(loops.body).size(), 3u) << ir::print(loops);
  const ir::Kernel costly =
      gpu_loops(kernel_of("kernel k(X: float32[72]) -> (Y: float32[70]) {\n"
                          "  E: float32[72]\n"
                          "  E[i] = exp(X[i])\n"
                          "  Y[i] = sum[r < 3](E[i + r])\n}"));
  EXPECT_EQ(ir::launched_statements(costly.body).size(), 2u) << ir::print(costly);
}

}  // namespace
}  // namespace kiln::testing::windows
