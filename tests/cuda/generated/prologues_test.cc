// Factors that are computed while they are fetched, as threads run them: what waits in registers is
// stored in time, beside what is copied in the background and arrives as late as it may.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/ir/print.h"
#include "tests/cuda/fake_device.h"
#include "tests/cuda/generated/host_gpu.h"
#include "tests/support/cuda_text.h"
#include "tests/support/gpu_run.h"
#include "tests/support/kernels.h"

namespace kiln::testing::prologues {
namespace {

struct Case {
  const char* name;
  const char* text;
  std::string_view sketch;
  std::string_view arch = "sm_90";
};
std::ostream& operator<<(std::ostream& stream, const Case& test) { return stream << test.name; }

/// Sums of ten parts, or of nine and one that is shorter.
const Case kCases[] = {
    {"rows",
     R"(kernel k(A: float16[129, 320], s: float16[320], B: float16[320, 264]) -> (C: float32[129, 264]) {
       R: float16[129, 320]
       R[i, k] = max(A[i, k], float16(0)) * s[k]
       C[i, j] = sum[k < 320](float32(R[i, k]) * float32(B[k, j])) })",
     "matrix instructions, 128 x 256 a block, R computed in it"},
    {"columns",
     R"(kernel k(A: float16[257, 304], W: int8[130, 304], s: float32[130]) -> (C: float32[257, 130]) {
       R: float16[130, 304]
       R[j, k] = float16(float32(W[j, k]) * s[j])
       C[i, j] = sum[k < 304](float32(A[i, k]) * float32(R[j, k])) })",
     "matrix instructions, 256 x 128 a block, R computed in it"},
    {"both",
     R"(kernel k(A: float16[257, 304], B: float16[304, 136]) -> (C: float32[257, 136]) {
       R: float16[257, 304]
       R[i, k] = A[i, k] * float16(2)
       S: float16[304, 136]
       S[k, j] = max(B[k, j], float16(0))
       C[i, j] = sum[k < 304](float32(R[i, k]) * float32(S[k, j])) })",
     "matrix instructions, 128 x 128 a block, R computed in it, S computed in it"},
    {"with_copies",
     R"(kernel k(A: float16[257, 331], B: float16[331, 67]) -> (C: float32[257, 67]) {
       R: float16[257, 331]
       R[i, k] = max(A[i, k], float16(0))
       C[i, j] = sum[k < 331](float32(R[i, k]) * float32(B[k, j])) })",
     "matrix instructions on copies of both factors, 256 x 128 a block, R computed in it"},
    {"convolution",
     R"(kernel k(X: float16[2, 8, 8, 64], F: float16[3, 3, 64, 256]) -> (Y: float32[2, 8, 8, 256]) {
       P: float16[2, 10, 10, 64]
       P[n, y, x, c] = if_then_else(y >= 1 && y < 9 && x >= 1 && x < 9,
                                    max(X[n, y - 1, x - 1, c], float16(0)), float16(0))
       Y[n, y, x, f] = sum[r < 3, s < 3, c < 64](float32(P[n, y + r, x + s, c]) *
                                                 float32(F[r, s, c, f])) })",
     "matrix instructions of all axes, 128 x 256 a block, P computed in it",
     "sm_90+sms1"},  // of which no sum is in parts
    {"lanes",
     R"(kernel k(A: float32[129, 67], s: float32[67], B: float32[67, 132]) -> (C: float32[129, 132]) {
       R: float32[129, 67]
       R[i, k] = max(A[i, k], 0.0) * s[k]
       S: float32[67, 132]
       S[k, j] = B[k, j] + 1
       C[i, j] = sum[k < 67](R[i, k] * S[k, j]) })",
     "a tile a block, 8 x 8 a thread, R computed in it, S computed in it"},
};

class ProloguesOnHost : public ::testing::TestWithParam<Case> {};

TEST_P(ProloguesOnHost, AreWhatTheDefinitionSays) {
  const language::TextKernel text = kernel_of(GetParam().text);
  const ir::Kernel loops = gpu_loops_by(text, GetParam().sketch, GetParam().arch);
  EXPECT_EQ(difference_on_host(text, loops, {}), "") << ir::print(loops);
}

INSTANTIATE_TEST_SUITE_P(All, ProloguesOnHost, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ProloguesOnHost, MissEachOfTheirBarriersAndAwaits) {
  const language::TextKernel text = kernel_of(kCases[0].text);
  const ir::Kernel loops = gpu_loops_by(text, kCases[0].sketch);
  const std::string source = source_of(loops);
  for (const auto& [what, call] : {std::pair("FAKE_NVRTC_WITHOUT_BARRIER", "__syncthreads();"),
                                   std::pair("FAKE_NVRTC_WITHOUT_AWAIT", "kiln_await<2>();")}) {
    const size_t copies = count_in(source, call);
    EXPECT_GT(copies, 0U) << source;
    for (size_t i = 0; i < copies; ++i) {
      const Setting without(what, std::to_string(i));
      EXPECT_NE(difference_on_host(text, loops, {}), "") << what << i;
    }
  }
}

}  // namespace
}  // namespace kiln::testing::prologues
