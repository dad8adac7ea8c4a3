// What is made of sums element by element is computed where the sums are in registers: one launch,
// and no sums in memory.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/ir/launch.h"
#include "compiler/ir/print.h"
#include "tests/support/fuzz_case.h"
#include "tests/support/gpu_run.h"
#include "tests/support/kernels.h"
#include "tests/support/random_contraction.h"

namespace kiln::testing::epilogues {
namespace {

struct Case {
  const char* name;
  const char* text;
  size_t launches = 1;
  std::vector<int64_t> sizes = {};
};
std::ostream& operator<<(std::ostream& stream, const Case& test) { return stream << test.name; }

const Case kCases[] = {
    {"inside_of_an_expression",
     R"(kernel k(A: float32[n, l], B: float32[l, m], c: float32[m]) -> (C: float32[n, m]) {
       C[i, j] = max(sum[k < l](A[i, k] * B[k, j]) + c[j], 0) })",
     1,
     {40, 20, 66}},
    {"through_stages",
     R"(kernel k(A: float32[40, 20], B: float32[20, 64], c: float32[64], R: float32[40, 64])
         -> (C: float32[40, 64]) {
       S: float32[40, 64]
       S[i, j] = sum[k < 20](A[i, k] * B[k, j])
       T: float32[40, 64]
       T[i, j] = S[i, j] + c[j]
       U: float32[40, 64]
       U[i, j] = T[i, j] * sigmoid(T[i, j])
       C[i, j] = U[i, j] + R[i, j] })"},
    {"by_tensor_cores",
     R"(kernel k(A: float16[80, 32], B: float16[32, 72], c: float16[72]) -> (C: float16[80, 72]) {
       S: float32[80, 72]
       S[i, j] = sum[k < 32](float32(A[i, k]) * float32(B[k, j]))
       C[i, j] = float16(max(S[i, j] + float32(c[j]), 0.0)) })"},
    {"of_turned_bytes",
     R"(kernel k(A: int8[64, 64], B: int8[64, 72], s: float32[72]) -> (C: float32[64, 72]) {
       S: int32[64, 72]
       S[i, j] = sum[k < 64](int32(A[k, i]) * int32(B[k, j]))
       C[i, j] = float32(S[i, j]) * s[j] })"},
    {"of_a_convolution",
     R"(kernel k(X: float32[2, 3, 16, 17], F: float32[40, 3, 3, 3], c: float32[40])
         -> (Y: float32[2, 40, 7, 8]) {
       S: float32[2, 40, 7, 8]
       S[b, o, i, j] = sum[k < 3, p < 3, q < 3](X[b, k, i*2 + p, j*2 + q] * F[o, k, p, q])
       Y[b, o, i, j] = max(S[b, o, i, j] + c[o], 0.0) })"},
    {"of_a_padded_convolution_by_tensor_cores",
     R"(kernel k(X: float16[2, 8, 5, 16], F: float16[3, 3, 16, 64], c: float32[64])
         -> (Y: float16[2, 8, 5, 64]) {
       P: float16[2, 10, 7, 16]
       P[n, y, x, c] = if_then_else(y >= 1 && y < 9 && x >= 1 && x < 6, X[n, y - 1, x - 1, c],
                                    float16(0))
       S: float32[2, 8, 5, 64]
       S[n, y, x, f] = sum[r < 3, s < 3, c < 16](float32(P[n, y + r, x + s, c]) *
                                                 float32(F[r, s, c, f]))
       Y[n, y, x, f] = float16(max(S[n, y, x, f] + c[f], 0.0)) })"},
    {"with_batches_in_another_order",
     R"(kernel k(A: float32[3, 40, 20], B: float32[3, 20, 36]) -> (C: float32[40, 3, 36]) {
       S: float32[3, 40, 36]
       S[b, i, j] = sum[k < 20](A[b, i, k] * B[b, k, j])
       C[i, b, j] = S[b, i, j] * 0.5 })"},
    {"of_two_products_is_that_of_the_first",
     R"(kernel k(A: float32[40, 20], B: float32[20, 36], D: float32[20, 36]) -> (C: float32[40, 36]) {
       S: float32[40, 36]
       S[i, j] = sum[k < 20](A[i, k] * B[k, j])
       T: float32[40, 36]
       T[i, j] = sum[k < 20](A[i, k] * D[k, j])
       C[i, j] = S[i, j] * sigmoid(T[i, j]) })",
     2},
    {"of_a_product_of_a_product",
     R"(kernel k(A: float32[40, 20], B: float32[20, 36], D: float32[36, 34]) -> (C: float32[40, 34]) {
       S: float32[40, 36]
       S[i, j] = sum[k < 20](A[i, k] * B[k, j])
       H: float32[40, 36]
       H[i, j] = max(S[i, j], 0.0)
       T: float32[40, 34]
       T[i, j] = sum[k < 36](H[i, k] * D[k, j])
       C[i, j] = tanh(T[i, j]) })",
     2},
    {"down_columns",
     R"(kernel k(X: float32[300, 40]) -> (M: float32[40]) {
       S: float32[40]
       S[j] = sum[i < 300](X[i, j])
       M[j] = S[j] / 300.0 })"},
    {"down_columns_of_images",
     R"(kernel k(X: float32[3, 70, 5, 33]) -> (M: float32[5, 3, 33]) {
       S: float32[3, 5, 33]
       S[n, c, x] = sum[y < 70](X[n, y, c, x])
       M[c, n, x] = sqrt(abs(S[n, c, x])) })"},
    {"scaled_by_a_sum_of_rows",
     R"(kernel k(A: float32[40, 20], B: float32[20, 36]) -> (C: float32[40, 36]) {
       S: float32[40, 36]
       S[i, j] = sum[k < 20](A[i, k] * B[k, j])
       R: float32[40]
       R[i] = sum[k < 20](A[i, k])
       C[i, j] = S[i, j] / R[i] })",
     2},
};

class Epilogues : public ::testing::TestWithParam<Case> {};

TEST_P(Epilogues, AreComputedWithTheSums) {
  const language::TextKernel text = kernel_of(GetParam().text);
  const ir::Kernel loops = gpu_loops(text);
  EXPECT_EQ(ir::launched_statements(loops.body).size(), GetParam().launches) << ir::print(loops);
  EXPECT_EQ(gpu_difference(text, loops, GetParam().sizes), "") << ir::print(loops);
}

INSTANTIATE_TEST_SUITE_P(All, Epilogues, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// A softmax reads the sums of a row several times, so they are stored first.
TEST(EpiloguesLeave, WhatIsReadTwiceOrElsewhere) {
  for (const auto& [result, launches] :
       {std::pair{"T[i, j] / sum[l < 36](exp(T[i, l]))", 2}, std::pair{"T[39 - i, j]", 2},
        std::pair{"T[i, j] + T[39 - i, j]", 2}}) {
    const language::TextKernel text = kernel_of(fmt::format(
        "kernel k(A: float32[40, 20], B: float32[20, 36]) -> (C: float32[40, 36]) {{\n"
        "  T: float32[40, 36]\n  T[i, j] = sum[k < 20](A[i, k] * B[k, j])\n  C[i, j] = {}\n}}\n",
        result));
    const ir::Kernel loops = gpu_loops(text);
    EXPECT_EQ(ir::launched_statements(loops.body).size(), static_cast<size_t>(launches))
        << ir::print(loops);
    EXPECT_EQ(gpu_difference(text, loops, {}), "") << ir::print(loops);
  }
}

// Those with sides that are long enough for a tile are one launch.
TEST(EpiloguesFuzz, DrawnAtRandomAreRight) {
  const uint64_t first = fuzz_seed(0);
  const uint64_t end = first + static_cast<uint64_t>(fuzz_rounds(60));
  uint64_t single = 0;
  for (uint64_t seed = first; seed < end && !HasFailure(); ++seed) {
    Random random(seed);
    DrawnContraction drawn = drawn_contraction(random);
    if (random.chance(0.5)) drawn.text = without_tf32(drawn.text);
    SCOPED_TRACE(fmt::format("to repeat: KILN_FUZZ_SEED={}\n{}", seed, drawn.text));
    const language::TextKernel text = kernel_of(drawn.text);
    const ir::Kernel loops = gpu_loops(text);
    EXPECT_EQ(gpu_difference(text, loops, drawn.sizes), "") << ir::print(loops);
    single += ir::launched_statements(loops.body).size() == 1 ? 1 : 0;
  }
  EXPECT_GE(single * 3, end - first >= 60 ? end - first : 0);
}

}  // namespace
}  // namespace kiln::testing::epilogues
