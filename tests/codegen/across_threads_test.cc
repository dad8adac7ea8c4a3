// Lines along a dimension that is not the last one get a thread each, with all that is reduced
// along them.
#include <gtest/gtest.h>

#include "compiler/ir/launch.h"
#include "compiler/ir/print.h"
#include "tests/support/gpu_run.h"
#include "tests/support/kernels.h"

namespace kiln::testing::across_threads {
namespace {

struct Case {
  const char* name;
  const char* text;
  size_t launches = 1;
};
std::ostream& operator<<(std::ostream& stream, const Case& test) { return stream << test.name; }

const Case kCases[] = {
    {"softmax_over_channels",
     R"(kernel k(X: float32[2, 5, 30, 50]) -> (Y: float32[2, 5, 30, 50]) {
       M: float32[2, 30, 50]
       M[n, y, x] = max[c < 5](X[n, c, y, x])
       E: float32[2, 5, 30, 50]
       E[n, c, y, x] = exp(X[n, c, y, x] - M[n, y, x])
       T: float32[2, 30, 50]
       T[n, y, x] = sum[c < 5](E[n, c, y, x])
       Y[n, c, y, x] = E[n, c, y, x] / T[n, y, x] })"},
    {"softmax_over_the_first", R"(kernel k(X: float32[10, 2600]) -> (Y: float32[10, 2600]) {
       M: float32[2600]
       M[x] = max[c < 10](X[c, x])
       T: float32[2600]
       T[x] = sum[c < 10](exp(X[c, x] - M[x]))
       L: float32[2600]
       L[x] = M[x] + log(T[x])
       Y[c, x] = X[c, x] - L[x] })"},
    {"norm_that_keeps_the_dimension",
     R"(kernel k(X: float32[2, 6, 1500], G: float32[6]) -> (Y: float32[2, 6, 1500]) {
       S: float32[2, 1, 1500]
       S[n, u, x] = sum[c < 6](X[n, c, x])
       D: float32[2, 6, 1500]
       D[n, c, x] = X[n, c, x] - S[n, 0, x] / 6.0
       V: float32[2, 1, 1500]
       V[n, u, x] = sum[c < 6](D[n, c, x] * D[n, c, x])
       Y[n, c, x] = D[n, c, x] * rsqrt(V[n, 0, x] / 6.0 + 0.001) * G[c] })"},
    {"what_is_made_of_a_sum_that_is_no_line",
     R"(kernel k(Z: float32[2, 5, 1500], X: float32[2, 1500, 2, 2]) -> (Y: float32[2, 5, 1500]) {
       S: float32[2, 1500]
       S[n, x] = sum[r < 2, s < 2](X[n, x, r, s])
       C: float32[2, 1500]
       C[n, x] = S[n, x] * 2.0
       M: float32[2, 1500]
       M[n, x] = max[c < 5](Z[n, c, x] - C[n, x])
       Y[n, c, x] = Z[n, c, x] - M[n, x] })",
     2},
    {"another_line_is_read", R"(kernel k(X: float32[10, 2600]) -> (Y: float32[10, 2600]) {
       M: float32[2600]
       M[x] = max[c < 10](X[c, x])
       Y[c, x] = X[c, x] - M[2599 - x] })",
     2},
    {"few_lines", R"(kernel k(X: float32[10, 260]) -> (Y: float32[10, 260]) {
       M: float32[260]
       M[x] = max[c < 10](X[c, x])
       Y[c, x] = X[c, x] - M[x] })",
     2},
    {"few_long_lines", R"(kernel k(X: float32[50, 2600]) -> (Y: float32[50, 2600]) {
       M: float32[2600]
       M[x] = max[c < 50](X[c, x])
       Y[c, x] = X[c, x] - M[x] })",
     2},
};

class AcrossThreads : public ::testing::TestWithParam<Case> {};

TEST_P(AcrossThreads, ReduceLinesInOneLaunch) {
  const language::TextKernel text = kernel_of(GetParam().text);
  for (const bool strict : {false, true}) {
    const ir::Kernel loops = gpu_loops(text, {.strict = strict}, "sm_75");
    EXPECT_EQ(ir::launched_statements(loops.body).size(), GetParam().launches) << ir::print(loops);
    EXPECT_EQ(gpu_difference(text, loops, {}), "") << ir::print(loops);
    for (const ir::Stmt& launch : ir::launched_statements(loops.body))
      EXPECT_NE(ir::print(launch).find("for blockIdx.x"), std::string::npos) << ir::print(loops);
  }
}

INSTANTIATE_TEST_SUITE_P(All, AcrossThreads, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace kiln::testing::across_threads
