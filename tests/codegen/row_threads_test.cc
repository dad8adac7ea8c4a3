// Rows that are reduced get a block of threads each, without a step.
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
};
std::ostream& operator<<(std::ostream& stream, const Case& test) { return stream << test.name; }

const Case kRows[] = {
    {"sum", "kernel k(X: float32[m, n]) -> (Y: float32[m]) { Y[i] = sum[j < n](X[i, j]) }"},
    {"whole", "kernel k(X: float32[m, n]) -> (Y: float32[]) { Y[] = sum[i < m, j < n](X[i, j]) }"},
    {"start_from_a_tensor", R"(kernel k(X: float32[m, n], S: float32[m]) -> (Y: float32[m]) {
       Y[i] = max[j < n](X[i, j], init=S[i]) })"},
    {"mean", R"(kernel k(X: float32[m, n]) -> (Y: float32[m]) {
       S: float32[m]
       S[i] = sum[j < n](X[i, j])
       Y[i] = S[i] / float32(n) })"},
    {"softmax", R"(kernel k(X: float32[2, m, n]) -> (Y: float32[2, m, n]) {
       M: float32[2, m]
       M[i, j] = max[k < n](X[i, j, k])
       E: float32[2, m, n]
       E[i, j, k] = exp(X[i, j, k] - M[i, j])
       S: float32[2, m]
       S[i, j] = sum[k < n](E[i, j, k])
       Y[i, j, k] = E[i, j, k] / S[i, j] })"},
    {"layer_norm", R"(kernel k(X: float32[m, n]) -> (Y: float32[m, n]) {
       T: float32[m]
       T[i] = sum[k < n](X[i, k])
       A: float32[m]
       A[i] = T[i] / float32(n)
       V: float32[m]
       V[i] = sum[k < n]((X[i, k] - A[i]) * (X[i, k] - A[i]))
       Y[i, j] = (X[i, j] - A[i]) / sqrt(V[i] / float32(n) + 0.00001) })"},
    {"means_inside_expressions", R"(kernel k(X: float32[m, n]) -> (Y: float32[m, n]) {
       A: float32[m]
       A[i] = sum[k < n](X[i, k]) / float32(n)
       V: float32[m]
       V[i] = sum[k < n]((X[i, k] - A[i]) * (X[i, k] - A[i])) / float32(n)
       Y[i, j] = (X[i, j] - A[i]) * rsqrt(V[i] + 0.00001) })"},
};

class RowThreads : public ::testing::TestWithParam<Case> {};

TEST_P(RowThreads, ReduceRowsInOneLaunch) {
  const language::TextKernel text = kernel_of(GetParam().text);
  const ir::Kernel loops = gpu_loops(text);
  EXPECT_EQ(ir::launched_statements(loops.body).size(), 1u) << ir::print(loops);
  EXPECT_NE(ir::print(loops).find("barrier"), std::string::npos) << ir::print(loops);
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{3, 150}, {2, 128}, {1, 3}})
    EXPECT_EQ(gpu_difference(text, loops, sizes), "");
}

INSTANTIATE_TEST_SUITE_P(All, RowThreads, ::testing::ValuesIn(kRows),
                         [](const auto& info) { return std::string(info.param.name); });

void expect_no_barrier(const char* text, const CompileOptions& options = {}) {
  const std::string loops = ir::print(gpu_loops(kernel_of(text), options));
  EXPECT_EQ(loops.find("barrier"), std::string::npos) << loops;
}

TEST(RowThreadsLeave, ReductionsThatAreBetterOneThreadAnElement) {
  expect_no_barrier(
      "kernel k(X: float32[60, n]) -> (Y: float32[n]) { Y[j] = sum[i < 60](X[i, j]) }");
  expect_no_barrier("kernel k(X: float32[m, 8]) -> (Y: float32[m]) { Y[i] = sum[j < 8](X[i, j]) }");
}

TEST(ShortRows, AreComputedInOneLaunchOneThreadEach) {
  const language::TextKernel text =
      kernel_of(R"(kernel softmax(X: float32[m, 10]) -> (Y: float32[m, 10]) {
        M: float32[m]
        M[i] = max[k < 10](X[i, k])
        E: float32[m, 10]
        E[i, k] = exp(X[i, k] - M[i])
        S: float32[m]
        S[i] = sum[k < 10](E[i, k])
        Y[i, k] = E[i, k] / S[i] })");
  for (const bool strict : {false, true}) {
    const ir::Kernel loops = gpu_loops(text, CompileOptions{.strict = strict});
    EXPECT_EQ(ir::launched_statements(loops.body).size(), 1u) << ir::print(loops);
    EXPECT_EQ(ir::print(loops).find("barrier"), std::string::npos) << ir::print(loops);
    EXPECT_EQ(gpu_difference(text, loops, {140}), "");
  }
}

TEST(RowThreadsLeave, FloatSumsInTheirOrderWhereStrict) {
  expect_no_barrier("kernel k(X: float32[m, n]) -> (Y: float32[m]) { Y[i] = sum[j < n](X[i, j]) }",
                    CompileOptions{.strict = true});
}

}  // namespace
}  // namespace kiln::testing
