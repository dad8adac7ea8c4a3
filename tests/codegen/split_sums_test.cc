// Sums of few results are in parts that blocks have side by side, and added up by a second launch.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/ir/launch.h"
#include "compiler/ir/print.h"
#include "tests/support/cuda_text.h"
#include "tests/support/fuzz_case.h"
#include "tests/support/gpu_run.h"
#include "tests/support/kernels.h"
#include "tests/support/random_contraction.h"

namespace kiln::testing::split_sums {
namespace {

struct Case {
  const char* name;
  const char* text;
  const char* parts;
};
std::ostream& operator<<(std::ostream& stream, const Case& test) { return stream << test.name; }

const Case kProducts[] = {
    {"of_few_rows",
     R"(kernel k(A: float32[20, 1024], B: float32[1024, 36]) -> (C: float32[20, 36]) {
       C[i, j] = sum[k < 1024](A[i, k] * B[k, j]) })",
     "C.rf: float32[11, 20, 36]"},
    {"of_few_columns",
     R"(kernel k(A: float32[36, 1024], B: float32[1024, 18]) -> (C: float32[36, 18]) {
       C[i, j] = sum[k < 1024](A[i, k] * B[k, j]) })",
     "C.rf: float32[11, 36, 18]"},
    {"of_turned_factors",
     R"(kernel k(A: float32[1024, 40], B: float32[36, 1024]) -> (C: float32[40, 36]) {
       C[i, j] = sum[k < 1024](A[k, i] * B[j, k]) })",
     "C.rf: float32[11, 40, 36]"},
    {"of_an_odd_sum",
     R"(kernel k(A: float32[33, 945], B: float32[945, 37]) -> (C: float32[33, 37]) {
       C[i, j] = sum[k < 945](A[i, k] * B[k, j]) })",
     "C.rf: float32[10, 33, 37]"},
    {"of_a_prime_sum",
     R"(kernel k(A: float32[33, 997], B: float32[997, 37]) -> (C: float32[33, 37]) {
       C[i, j] = sum[k < 997](A[i, k] * B[k, j]) })",
     "C.rf: float32[11, 33, 37]"},
    {"by_tensor_cores_of_an_odd_sum",
     R"(kernel k(A: float16[40, 945], B: float16[945, 72]) -> (C: float32[40, 72]) {
       C[i, j] = sum[k < 945](float32(A[i, k]) * float32(B[k, j])) })",
     "C.rf: float32[7, 40, 72]"},
    {"with_batches",
     R"(kernel k(A: float32[3, 20, 512], B: float32[3, 512, 36]) -> (C: float32[3, 20, 36]) {
       C[b, i, j] = sum[k < 512](A[b, i, k] * B[b, k, j]) })",
     "C.rf: float32[6, 3, 20, 36]"},
    {"with_an_epilogue",
     R"(kernel k(A: float32[20, 1024], B: float32[1024, 36], c: float32[36]) -> (C: float16[20, 36]) {
       S: float32[20, 36]
       S[i, j] = sum[k < 1024](A[i, k] * B[k, j])
       C[i, j] = float16(max(S[i, j] + c[j], 0.0)) })",
     "S.rf: float32[11, 20, 36]"},
    {"inside_of_an_expression",
     R"(kernel k(A: float32[20, 1024], B: float32[1024, 36], c: float32[36]) -> (C: float32[20, 36]) {
       C[i, j] = max(sum[k < 1024](A[i, k] * B[k, j]) + c[j], 0.0) })",
     "float32[11, 20, 36]"},
    {"of_a_convolution",
     R"(kernel k(X: float32[1, 64, 9, 9], F: float32[40, 64, 3, 3]) -> (Y: float32[1, 40, 7, 7]) {
       Y[b, m, y, x] = sum[c < 64, r < 3, s < 3](X[b, c, y + r, x + s] * F[m, c, r, s]) })",
     "Y.rf: float32[4, 1, 40, 7, 7]"},
    {"of_a_padded_convolution",
     R"(kernel k(X: float32[1, 6, 6, 64], F: float32[3, 3, 64, 40], c: float32[40])
         -> (Y: float32[1, 6, 6, 40]) {
       P: float32[1, 8, 8, 64]
       P[n, y, x, c] = if_then_else(y >= 1 && y < 7 && x >= 1 && x < 7, X[n, y - 1, x - 1, c], 0.0)
       S: float32[1, 6, 6, 40]
       S[n, y, x, f] = sum[r < 3, s < 3, c < 64](P[n, y + r, x + s, c] * F[r, s, c, f])
       Y[n, y, x, f] = max(S[n, y, x, f] + c[f], 0.0) })",
     "S.rf: float32[4, 1, 6, 6, 40]"},
    {"of_a_few_rows_along_the_sum",
     R"(kernel k(X: float32[5, 8192], W: float32[40, 8192]) -> (Y: float32[5, 40]) {
       Y[i, j] = sum[k < 8192](X[i, k] * W[j, k]) })",
     "Y.rf: float32[16, 5, 40]"},
    {"by_tensor_cores",
     R"(kernel k(A: float16[64, 1024], B: float16[1024, 72], c: float32[72]) -> (C: float16[64, 72]) {
       S: float32[64, 72]
       S[i, j] = sum[k < 1024](float32(A[i, k]) * float32(B[k, j]))
       C[i, j] = float16(max(S[i, j] + c[j], 0.0)) })",
     "S.rf: float32[8, 64, 72]"},
    {"of_turned_bytes",
     R"(kernel k(A: int8[1024, 64], B: int8[1024, 64]) -> (C: int32[64, 64]) {
       C[i, j] = sum[k < 1024](int32(A[k, i]) * int32(B[k, j])) })",
     "C.rf: int32[8, 64, 64]"},
};

const Case kColumns[] = {
    {"that_are_few",
     R"(kernel k(X: float32[16384, 64]) -> (Y: float32[64]) { Y[j] = sum[i < 16384](X[i, j]) })",
     "Y.rf: float32["},
    {"that_are_fewer_than_a_warp",
     R"(kernel k(X: float32[20000, 8]) -> (Y: float32[8]) { Y[j] = max[i < 20000](X[i, j]) })",
     "Y.rf: float32["},
    {"with_an_epilogue",
     R"(kernel k(X: float32[20000, 3]) -> (Y: float32[3]) {
       S: float32[3]
       S[j] = sum[i < 20000](X[i, j])
       Y[j] = S[j] / 20000.0 })",
     "S.rf: float32["},
    {"of_several_axes",
     R"(kernel k(X: float32[4, 4096, 32]) -> (Y: float32[32]) {
       Y[j] = sum[a < 4, b < 4096](X[a, b, j]) })",
     "Y.rf: float32["},
    {"times_a_few_rows",
     R"(kernel k(A: float32[5, 8192], B: float32[8192, 40]) -> (C: float32[5, 40]) {
       C[i, j] = sum[k < 8192](A[i, k] * B[k, j]) })",
     "C.rf: float32["},
};

class Divided : public ::testing::TestWithParam<Case> {};

TEST_P(Divided, IsAddedUpByASecondLaunch) {
  const language::TextKernel text = kernel_of(GetParam().text);
  const ir::Kernel loops = gpu_loops(text);
  EXPECT_EQ(ir::launched_statements(loops.body).size(), 2u) << ir::print(loops);
  EXPECT_NE(ir::print(loops).find(GetParam().parts), std::string::npos) << ir::print(loops);
  EXPECT_EQ(gpu_difference(text, loops, {}), "") << ir::print(loops);
}

INSTANTIATE_TEST_SUITE_P(Products, Divided, ::testing::ValuesIn(kProducts),
                         [](const auto& info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(Columns, Divided, ::testing::ValuesIn(kColumns),
                         [](const auto& info) { return std::string(info.param.name); });

bool is_divided(std::string_view text, const CompileOptions& options = {}) {
  return ir::launched_statements(gpu_loops(kernel_of(text), options).body).size() > 1;
}

// The parts are the order of the sum, which only integers may have where that is asked for, and
// which no size of a call may decide.
TEST(SplitSumsLeave, FloatsWhereStrictAndSizesOfACall) {
  const auto product = [](std::string_view type, std::string_view steps) {
    return fmt::format(
        "kernel k(A: {0}[40, {1}], B: {0}[{1}, 36]) -> (C: {0}[40, 36]) {{\n"
        "  C[i, j] = sum[k < {1}](A[i, k] * B[k, j]) }}",
        type, steps);
  };
  const CompileOptions strict{.strict = true};
  EXPECT_TRUE(is_divided(product("float32", "2048")));
  EXPECT_FALSE(is_divided(product("float32", "2048"), strict));
  EXPECT_TRUE(is_divided(product("int32", "2048"), strict));
  EXPECT_FALSE(is_divided(product("float32", "n")));
  EXPECT_FALSE(
      is_divided("kernel k(X: float32[n, 8]) -> (Y: float32[8]) {\n"
                 "  Y[j] = sum[i < n](X[i, j]) }"));
}

TEST(SplitSumsLeave, WhatKeepsAllMultiprocessorsBusyOrIsShort) {
  EXPECT_FALSE(
      is_divided("kernel k(A: float32[2048, 2048], B: float32[2048, 2048])\n"
                 "    -> (C: float32[2048, 2048]) {\n"
                 "  C[i, j] = sum[k < 2048](A[i, k] * B[k, j]) }"));
  EXPECT_FALSE(
      is_divided("kernel k(A: float32[40, 128], B: float32[128, 40])\n"
                 "    -> (C: float32[40, 40]) {\n"
                 "  C[i, j] = sum[k < 128](A[i, k] * B[k, j]) }"));
  EXPECT_FALSE(
      is_divided("kernel k(X: float32[8192, 4096]) -> (Y: float32[4096]) {\n"
                 "  Y[j] = sum[i < 8192](X[i, j]) }"));
  EXPECT_FALSE(
      is_divided("kernel k(X: float32[300, 40]) -> (Y: float32[40]) {\n"
                 "  Y[j] = sum[i < 300](X[i, j]) }"));
}

TEST(SplitSumsFuzz, DrawnAtRandomAreRight) {
  const uint64_t first = fuzz_seed(0);
  const uint64_t end = first + static_cast<uint64_t>(fuzz_rounds(20));
  uint64_t divided = 0;
  for (uint64_t seed = first; seed < end && !HasFailure(); ++seed) {
    Random random(seed);
    DrawnContraction drawn = drawn_contraction(
        random, {.least_of_side = 17, .most_of_side = 40, .least_of_sum = 256, .most_of_sum = 400});
    if (random.chance(0.7)) drawn.text = without_tf32(drawn.text);
    SCOPED_TRACE(fmt::format("to repeat: KILN_FUZZ_SEED={}\n{}", seed, drawn.text));
    const language::TextKernel text = kernel_of(drawn.text);
    const ir::Kernel loops = gpu_loops(text);
    divided += ir::launched_statements(loops.body).size() > 1 ? 1 : 0;
    EXPECT_EQ(gpu_difference(text, loops, drawn.sizes), "");
  }
  EXPECT_GE(divided * 8, end - first >= 20 ? end - first : 0);
}

/// A part of the sum is no multiple of the steps, and 49 places are none of the rows of a tile:
/// each place and step says that what it reads is inside, and so does their sum.
TEST(SplitSums, OfWindowsHaveMatrixInstructions) {
  const language::TextKernel text = kernel_of(
      "kernel k(X: float16[1, 9, 9, 64], F: float16[64, 3, 3, 64]) -> (Y: float32[1, 7, 7, 64]) {"
      " Y[n, y, x, f] = sum[r < 3, s < 3, c < 64]("
      "float32(X[n, y + r, x + s, c]) * float32(F[f, r, s, c])) }");
  const std::string source = source_of(gpu_loops(text, {}, "sm_80"));
  EXPECT_NE(source.find("kiln_multiply<"), std::string::npos) << source;
  EXPECT_EQ(source.find("kiln_fire"), std::string::npos) << source;
}

}  // namespace
}  // namespace kiln::testing::split_sums
