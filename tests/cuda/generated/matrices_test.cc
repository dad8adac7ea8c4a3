// Matrix instructions as the lanes of a warp run them: which elements ldmatrix gives to whom, and
// whose products mma.sync adds up.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/ir/print.h"
#include "tests/cuda/fake_device.h"
#include "tests/cuda/generated/host_gpu.h"
#include "tests/support/cuda_text.h"
#include "tests/support/gpu_run.h"
#include "tests/support/kernels.h"

namespace kiln::testing::matrices {
namespace {

struct Case {
  const char* name;
  const char* text;
  std::vector<int64_t> sizes = {};
};
std::ostream& operator<<(std::ostream& stream, const Case& test) { return stream << test.name; }

const Case kCases[] = {
    {"matmul", R"(kernel k(A: float16[80, 32], B: float16[32, 72]) -> (C: float32[80, 72]) {
       C[i, j] = sum[k < 32](float32(A[i, k]) * float32(B[k, j])) })"},
    {"dense", R"(kernel k(A: bfloat16[70, 48], B: bfloat16[66, 48]) -> (C: float32[70, 66]) {
       C[i, j] = sum[k < 48](float32(A[i, k]) * float32(B[j, k])) })"},
    {"both_transposed",
     R"(kernel k(A: float16[32, 64], B: float16[72, 32]) -> (C: float32[64, 72]) {
       C[i, j] = sum[k < 32](float32(A[k, i]) * float32(B[j, k])) })"},
    {"batches",
     R"(kernel k(A: bfloat16[2, 32, 65], B: bfloat16[2, 32, 64]) -> (C: float32[2, 65, 64]) {
       C[b, i, j] = sum[k < 32](float32(A[b, k, i]) * float32(B[b, k, j])) })"},
    {"any_sizes",
     R"(kernel k(A: float16[n, l], B: float16[l, m]) -> (C: float32[n, m]) {
       C[i, j] = sum[k < l](float32(A[i, k]) * float32(B[k, j])) })",
     {70, 37, 66}},
};

const Case kTensorFloatCases[] = {
    {"dense", R"(kernel k(A: float32[70, 48], B: float32[66, 48]) -> (C: float32[70, 66]) {
       C[i, j] = sum[k < 48](tf32(A[i, k]) * tf32(B[j, k])) })"},
    {"both_turned", R"(kernel k(A: float32[40, 64], B: float32[40, 72]) -> (C: float32[64, 72]) {
       C[i, j] = sum[k < 40](tf32(A[k, i]) * tf32(B[k, j])) })"},
};

class MatricesOnHost : public ::testing::TestWithParam<Case> {};

TEST_P(MatricesOnHost, AreWhatTheDefinitionSays) {
  const language::TextKernel text = kernel_of(GetParam().text);
  const ir::Kernel loops = gpu_loops(text);
  EXPECT_EQ(difference_on_host(text, loops, GetParam().sizes), "") << ir::print(loops);
}

INSTANTIATE_TEST_SUITE_P(All, MatricesOnHost, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(OfTensorFloats, MatricesOnHost, ::testing::ValuesIn(kTensorFloatCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(MatricesOnHost, MissEachOfTheirBarriers) {
  const language::TextKernel long_sum = kernel_of(
      R"(kernel k(A: float16[64, 192], B: float16[192, 64]) -> (C: float32[64, 64]) {
        C[i, j] = sum[k < 192](float32(A[i, k]) * float32(B[k, j])) })");
  const ir::Kernel loops = gpu_loops(long_sum);
  EXPECT_EQ(difference_on_host(long_sum, loops, {}), "");
  for (const char* const number : {"0", "1"}) {
    const Setting without("FAKE_NVRTC_WITHOUT_BARRIER", number);
    EXPECT_NE(difference_on_host(long_sum, loops, {}), "") << number;
  }
}

const Case kJoinedCases[] = {
    {"convolution",
     R"(kernel k(X: float16[2, 8, 5, 16], F: float16[3, 3, 16, 64]) -> (Y: float32[2, 8, 5, 64]) {
       P: float16[2, 10, 7, 16]
       P[n, y, x, c] = if_then_else(y >= 1 && y < 9 && x >= 1 && x < 6, X[n, y - 1, x - 1, c],
                                    float16(0))
       Y[n, y, x, f] = sum[r < 3, s < 3, c < 16](float32(P[n, y + r, x + s, c]) *
                                                 float32(F[r, s, c, f])) })"},
    {"channels_first",
     R"(kernel k(X: bfloat16[2, 16, 9, 8], F: bfloat16[66, 16, 3, 3]) -> (Y: float32[2, 66, 7, 6]) {
       Y[n, f, y, x] = sum[c < 16, r < 3, s < 3](float32(X[n, c, y + r, x + s]) *
                                                 float32(F[f, c, r, s])) })"},
    {"bytes",
     R"(kernel k(X: int8[2, 10, 7, 32], F: int8[3, 3, 32, 64]) -> (Y: int32[2, 8, 5, 64]) {
       Y[n, y, x, f] = sum[r < 3, s < 3, c < 32](int32(X[n, y + r, x + s, c]) *
                                                 int32(F[r, s, c, f])) })"},
    {"one_by_one",
     R"(kernel k(X: float16[n, 6, 7, 32], F: float16[32, 64]) -> (Y: float32[n, 6, 7, 64]) {
       Y[b, y, x, f] = sum[c < 32](float32(X[b, y, x, c]) * float32(F[c, f])) })",
     {2}},
};

INSTANTIATE_TEST_SUITE_P(OfAllAxes, MatricesOnHost, ::testing::ValuesIn(kJoinedCases),
                         [](const auto& info) { return std::string(info.param.name); });

constexpr std::string_view kLate = "matrix instructions, 256 x 128 a block";
constexpr std::string_view kLateOfAllAxes = "matrix instructions of all axes, 256 x 128 a block";

/// Of tiles that are copied in the background: a sum of five parts and of one that is shorter, and
/// sides that are not whole tiles.
const Case kLateCases[] = {
    {"matmul", R"(kernel k(A: float16[72, 328], B: float16[328, 136]) -> (C: float32[72, 136]) {
       C[i, j] = sum[k < 328](float32(A[i, k]) * float32(B[k, j])) })"},
    {"dense", R"(kernel k(A: bfloat16[70, 328], B: bfloat16[67, 328]) -> (C: float32[70, 67]) {
       C[i, j] = sum[k < 328](float32(A[i, k]) * float32(B[j, k])) })"},
    {"both_transposed",
     R"(kernel k(A: float16[328, 264], B: float16[64, 328]) -> (C: float32[264, 64]) {
       C[i, j] = sum[k < 328](float32(A[k, i]) * float32(B[j, k])) })"},
    {"any_length",
     R"(kernel k(A: float16[l, 64], B: float16[l, 64]) -> (C: float32[64, 64]) {
       C[i, j] = sum[k < l](float32(A[k, i]) * float32(B[k, j])) })",
     {330}},
    {"any_short_length",
     R"(kernel k(A: float16[l, 64], B: float16[l, 64]) -> (C: float32[64, 64]) {
       C[i, j] = sum[k < l](float32(A[k, i]) * float32(B[k, j])) })",
     {80}},
};

class LateMatricesOnHost : public ::testing::TestWithParam<Case> {};

TEST_P(LateMatricesOnHost, AreWhatTheDefinitionSays) {
  const language::TextKernel text = kernel_of(GetParam().text);
  const ir::Kernel loops = gpu_loops_by(text, kLate);
  EXPECT_EQ(difference_on_host(text, loops, GetParam().sizes), "") << ir::print(loops);
  EXPECT_GT(count_in(source_of(loops), "kiln_copy<16, "), 0U);
}

INSTANTIATE_TEST_SUITE_P(All, LateMatricesOnHost, ::testing::ValuesIn(kLateCases),
                         [](const auto& info) { return std::string(info.param.name); });

/// What is around an image is copied from nowhere: zeros arrive with all else.
TEST(LateMatricesOnHost, HaveZerosAroundImages) {
  const language::TextKernel text = kernel_of(
      R"(kernel k(X: float16[2, 8, 5, 32], F: float16[3, 3, 32, 64]) -> (Y: float32[2, 8, 5, 64]) {
       P: float16[2, 10, 7, 32]
       P[n, y, x, c] = if_then_else(y >= 1 && y < 9 && x >= 1 && x < 6, X[n, y - 1, x - 1, c],
                                    float16(0))
       Y[n, y, x, f] = sum[r < 3, s < 3, c < 32](float32(P[n, y + r, x + s, c]) *
                                                 float32(F[r, s, c, f])) })");
  const ir::Kernel loops = gpu_loops_by(text, kLateOfAllAxes);
  EXPECT_EQ(difference_on_host(text, loops, {}), "") << ir::print(loops);
  const std::string source = source_of(loops);
  EXPECT_GT(count_in(source, "kiln_copy_or_zero<16, "), 0U) << source;
  EXPECT_EQ(count_in(source, "P_shared_next"), 0U) << source;
}

/// The iteration stands in the code so many times.
void expect_each_is_missed(const language::TextKernel& text, std::string_view sketch, size_t copies,
                           const std::vector<int64_t>& sizes = {}) {
  const ir::Kernel loops = gpu_loops_by(text, sketch);
  EXPECT_EQ(difference_on_host(text, loops, sizes), "");
  const std::string source = source_of(loops);
  ASSERT_EQ(count_in(source, "__syncthreads();"), copies) << source;
  ASSERT_EQ(count_in(source, "kiln_await<1>();"), copies) << source;
  for (const char* const what : {"FAKE_NVRTC_WITHOUT_BARRIER", "FAKE_NVRTC_WITHOUT_AWAIT"}) {
    for (size_t i = 0; i < copies; ++i) {
      const Setting without(what, std::to_string(i));
      EXPECT_NE(difference_on_host(text, loops, sizes), "") << what << i;
    }
  }
}

TEST(LateMatricesOnHost, MissEachOfTheirBarriersAndAwaits) {
  expect_each_is_missed(
      kernel_of(R"(kernel k(A: float16[64, 448], B: float16[448, 64]) -> (C: float32[64, 64]) {
        C[i, j] = sum[k < 448](float32(A[i, k]) * float32(B[k, j])) })"),
      kLate, 4);
}

TEST(LateMatricesOnHost, OfConvolutionsMissThemToo) {
  expect_each_is_missed(
      kernel_of(
          R"(kernel k(X: float16[b, 10, 10, 64], F: float16[3, 3, 64, 64]) -> (Y: float32[b, 8, 8, 64]) {
        Y[n, y, x, f] = sum[r < 3, s < 3, c < 64](float32(X[n, y + r, x + s, c]) *
                                                  float32(F[r, s, c, f])) })"),
      kLateOfAllAxes, 1, {1});
}

}  // namespace
}  // namespace kiln::testing::matrices
