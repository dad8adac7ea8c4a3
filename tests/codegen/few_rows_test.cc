// Products of a few rows with a matrix: it is read once, and the threads of a block divide the sum.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/sketch_space.h"
#include "compiler/ir/launch.h"
#include "compiler/ir/print.h"
#include "tests/support/gpu_run.h"
#include "tests/support/kernels.h"

namespace kiln::testing::few_rows {
namespace {

constexpr const char* kAlongTheSum = "few rows, the sum divided among threads";
constexpr const char* kDownColumns = "rows divided among threads";

struct Case {
  const char* name;
  const char* text;
  const char* sketch;
  std::vector<int64_t> sizes = {};
};
std::ostream& operator<<(std::ostream& stream, const Case& test) { return stream << test.name; }

const Case kCases[] = {
    {"dense", R"(kernel k(X: float32[3, 520], W: float32[41, 520]) -> (Y: float32[3, 41]) {
       Y[i, j] = sum[k < 520](X[i, k] * W[j, k]) })",
     kAlongTheSum},
    {"dense_with_a_bias_of_odd_rows",
     R"(kernel k(X: float32[7, 521], W: float32[40, 521], c: float32[40]) -> (Y: float32[7, 40]) {
       S: float32[7, 40]
       S[i, j] = sum[k < 521](X[i, k] * W[j, k])
       Y[i, j] = max(S[i, j] + c[j], 0.0) })",
     kAlongTheSum},
    {"inside_of_an_expression",
     R"(kernel k(X: float32[7, 520], W: float32[40, 520], c: float32[40]) -> (Y: float32[7, 40]) {
       Y[i, j] = max(sum[k < 520](X[i, k] * W[j, k]) + c[j], 0.0) })",
     kAlongTheSum},
    {"a_few_columns", R"(kernel k(X: float32[45, 640], W: float32[2, 640]) -> (Y: float32[45, 2]) {
       Y[i, j] = sum[k < 640](X[i, k] * W[j, k]) })",
     kAlongTheSum},
    {"batches_of_integers",
     R"(kernel k(X: int8[2, 3, 512], W: int8[2, 33, 512]) -> (Y: int32[2, 3, 33]) {
       Y[b, i, j] = sum[k < 512](int32(X[b, i, k]) * int32(W[b, j, k])) })",
     kAlongTheSum},
    {"any_length",
     R"(kernel k(X: float32[4, n], W: float32[m, n]) -> (Y: float32[4, m]) {
       Y[i, j] = sum[k < n](X[i, k] * W[j, k]) })",
     kAlongTheSum,
     {70, 9}},
    {"matmul", R"(kernel k(A: float32[3, 70], B: float32[70, 40]) -> (C: float32[3, 40]) {
       C[i, j] = sum[k < 70](A[i, k] * B[k, j]) })",
     kDownColumns},
    {"a_row", R"(kernel k(A: float32[1, 200], B: float32[200, 67]) -> (C: float32[1, 67]) {
       C[i, j] = sum[k < 200](A[i, k] * B[k, j]) })",
     kDownColumns},
    {"batches_with_an_epilogue",
     R"(kernel k(A: float32[2, 5, 70], B: float32[2, 70, 40], c: float32[5]) -> (C: float32[5, 2, 40]) {
       S: float32[2, 5, 40]
       S[b, i, j] = sum[k < 70](A[b, i, k] * B[b, k, j])
       C[i, b, j] = S[b, i, j] * c[i] })",
     kDownColumns},
    {"as_many_bytes_as_there_may_be",
     R"(kernel k(A: int8[16, 70], B: int8[70, 256]) -> (C: int8[16, 256]) {
       C[i, j] = sum[k < 70](A[i, k] * B[k, j]) })",
     kDownColumns},
    {"two_axes_of_a_few",
     R"(kernel k(A: float32[2, 3, 70], B: float32[70, 40]) -> (C: float32[2, 40, 3]) {
       S: float32[2, 3, 40]
       S[a, i, j] = sum[k < 70](A[a, i, k] * B[k, j])
       C[a, j, i] = S[a, i, j] + 1.0 })",
     kDownColumns},
};

class FewRows : public ::testing::TestWithParam<Case> {};

TEST_P(FewRows, DivideTheSum) {
  const language::TextKernel text = kernel_of(GetParam().text);
  const SketchSpace space(text.kernel, {}, {TargetKind::Cuda, "sm_90"}, {});
  EXPECT_EQ(space.stages().at(0).sketches.at(0).name, GetParam().sketch);
  const ir::Kernel loops = gpu_loops(text);
  EXPECT_EQ(gpu_difference(text, loops, GetParam().sizes), "") << ir::print(loops);
  // 16 x 128 results would be more threads than a block may have.
  EXPECT_EQ(ir::print(loops).find("threadIdx.x in 0..2048"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(All, FewRows, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// The order of a float's sum stays where that is asked for; many rows have tiles.
TEST(FewRowsLeave, WhatIsStrictOrMany) {
  for (const auto& [rows, strict] : {std::pair{3, true}, std::pair{17, false}}) {
    const language::TextKernel text = kernel_of(
        fmt::format("kernel k(X: float32[{0}, 520], W: float32[41, 520]) -> (Y: float32[{0}, 41]) "
                    "{{ Y[i, j] = sum[k < 520](X[i, k] * W[j, k]) }}",
                    rows));
    const SketchSpace space(text.kernel, {}, {TargetKind::Cuda, "sm_90"}, {.strict = strict});
    EXPECT_NE(space.stages().at(0).sketches.at(0).name, kAlongTheSum);
  }
}

}  // namespace
}  // namespace kiln::testing::few_rows
