// Matrix instructions as the lanes of a warp run them: which elements ldmatrix gives to whom, and
// whose products mma.sync adds up.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/ir/print.h"
#include "tests/cuda/fake_device.h"
#include "tests/cuda/generated/host_gpu.h"
#include "tests/support/gpu_run.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
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

class MatricesOnHost : public ::testing::TestWithParam<Case> {};

TEST_P(MatricesOnHost, AreWhatTheDefinitionSays) {
  const language::TextKernel text = kernel_of(GetParam().text);
  const ir::Kernel loops = gpu_loops(text);
  EXPECT_EQ(difference_on_host(text, loops, GetParam().sizes), "") << ir::print(loops);
}

INSTANTIATE_TEST_SUITE_P(All, MatricesOnHost, ::testing::ValuesIn(kCases),
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

}  // namespace
}  // namespace kiln::testing
