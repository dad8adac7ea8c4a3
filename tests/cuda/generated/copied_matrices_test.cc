// Matrix instructions on copies of factors whose rows begin anywhere, as threads run them: each
// copy is whole before it is read, and what is copied on in the background arrives as late as it
// may.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/ir/print.h"
#include "tests/cuda/fake_device.h"
#include "tests/cuda/generated/host_gpu.h"
#include "tests/support/cuda_text.h"
#include "tests/support/gpu_run.h"
#include "tests/support/kernels.h"

namespace kiln::testing::copied_matrices {
namespace {

constexpr std::string_view kBoth =
    "matrix instructions on copies of both factors, 256 x 128 a block";

struct Case {
  const char* name;
  const char* text;
  std::string_view sketch;
  std::vector<int64_t> sizes = {};
};
std::ostream& operator<<(std::ostream& stream, const Case& test) { return stream << test.name; }

/// A sum of five parts and of one that is shorter.
const Case kCases[] = {
    {"matmul", R"(kernel k(A: float16[257, 331], B: float16[331, 67]) -> (C: float32[257, 67]) {
       C[i, j] = sum[k < 331](float32(A[i, k]) * float32(B[k, j])) })",
     kBoth},
    {"dense", R"(kernel k(A: bfloat16[257, 331], B: bfloat16[129, 331]) -> (C: float32[257, 129]) {
       C[i, j] = sum[k < 331](float32(A[i, k]) * float32(B[j, k])) })",
     kBoth},
    {"both_transposed",
     R"(kernel k(A: float16[331, 67], B: float16[129, 331]) -> (C: float32[67, 129]) {
       C[i, j] = sum[k < 331](float32(A[k, i]) * float32(B[j, k])) })",
     kBoth},
    {"tensor_floats",
     R"(kernel k(A: float32[257, 171], B: float32[171, 67]) -> (C: float32[257, 67]) {
       C[i, j] = sum[k < 171](tf32(A[i, k]) * tf32(B[k, j])) })",
     kBoth},
    {"bytes", R"(kernel k(A: int8[257, 661], B: int8[661, 67]) -> (C: int32[257, 67]) {
       C[i, j] = sum[k < 661](int32(A[i, k]) * int32(B[k, j])) })",
     kBoth},
    {"batches",
     R"(kernel k(A: float16[2, 257, 331], B: float16[2, 331, 64]) -> (C: float32[2, 257, 64]) {
       C[b, i, j] = sum[k < 331](float32(A[b, i, k]) * float32(B[b, k, j])) })",
     "matrix instructions on a copy of the rows, 256 x 128 a block"},
    {"convolution",
     R"(kernel k(X: float16[b, 10, 10, 64], F: float16[3, 3, 64, 67]) -> (Y: float32[b, 8, 8, 67]) {
       Y[n, y, x, f] = sum[r < 3, s < 3, c < 64](float32(X[n, y + r, x + s, c]) *
                                                 float32(F[r, s, c, f])) })",
     "matrix instructions of all axes on a copy of the columns, 256 x 128 a block",
     {1}},
};

class CopiedMatricesOnHost : public ::testing::TestWithParam<Case> {};

TEST_P(CopiedMatricesOnHost, AreWhatTheDefinitionSays) {
  const language::TextKernel text = kernel_of(GetParam().text);
  const ir::Kernel loops = gpu_loops_by(text, GetParam().sketch);
  EXPECT_EQ(difference_on_host(text, loops, GetParam().sizes), "") << ir::print(loops);
  EXPECT_GT(count_in(source_of(loops), "kiln_copy<16, "), 0U);
}

INSTANTIATE_TEST_SUITE_P(All, CopiedMatricesOnHost, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

/// Three iterations that are written out, and those that are left.
TEST(CopiedMatricesOnHost, MissEachOfTheirBarriersAndAwaits) {
  const language::TextKernel text = kernel_of(kCases[0].text);
  const ir::Kernel loops = gpu_loops_by(text, kBoth);
  const std::string source = source_of(loops);
  for (const auto& [what, call] : {std::pair("FAKE_NVRTC_WITHOUT_BARRIER", "__syncthreads();"),
                                   std::pair("FAKE_NVRTC_WITHOUT_AWAIT", "kiln_await<1>();")}) {
    const size_t copies = count_in(source, call);
    EXPECT_GT(copies, 0U) << source;
    for (size_t i = 0; i < copies; ++i) {
      const Setting without(what, std::to_string(i));
      EXPECT_NE(difference_on_host(text, loops, {}), "") << what << i;
    }
  }
}

}  // namespace
}  // namespace kiln::testing::copied_matrices
