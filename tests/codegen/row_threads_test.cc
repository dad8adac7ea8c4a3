// Rows that are reduced get a block of threads each, without a step.
#include <gtest/gtest.h>

#include "compiler/ir/launch.h"
#include "compiler/ir/print.h"
#include "compiler/language/evaluate/evaluate.h"
#include "tests/support/gpu_run.h"
#include "tests/support/kernels.h"

namespace kiln::testing::row_threads {
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

// Of sizes that are known: what a row is may have several axes, or dimensions of one element.
const Case kKnownRows[] = {
    {"of_a_matrix_and_a_vector",
     R"(kernel k(A: float32[5, 200], v: float32[200]) -> (Y: float32[5]) {
       Y[i] = sum[k < 200](A[i, k] * v[k]) })"},
    {"of_matrices_and_vectors",
     R"(kernel k(A: float32[2, 5, 64], v: float32[2, 64], c: float32[5]) -> (Y: float32[2, 5]) {
       S: float32[2, 5]
       S[b, i] = sum[k < 64](A[b, i, k] * v[b, k])
       Y[b, i] = S[b, i] + c[i] })"},
    {"of_several_axes", R"(kernel k(X: float32[3, 2, 7, 8]) -> (Y: float32[3, 2]) {
       Y[n, c] = sum[y < 7, x < 8](X[n, c, y, x]) })"},
    {"of_several_axes_apart", R"(kernel k(X: float32[3, 2, 7, 9]) -> (Y: float32[2]) {
       Y[c] = max[n < 3, y < 7, x < 9](X[n, c, y, x]) })"},
    {"of_groups", R"(kernel k(X: float32[2, 6, 5, 8]) -> (Y: float32[2, 3]) {
       Y[n, g] = sum[c < 2, y < 5, x < 8](X[n, g * 2 + c, y, x]) })"},
    {"that_keep_dimensions", R"(kernel k(X: float32[3, 2, 7, 8]) -> (Y: float32[3, 2, 7, 8]) {
       S: float32[3, 2, 1, 1]
       S[n, c, u, v] = sum[y < 7, x < 8](X[n, c, y, x])
       M: float32[3, 2, 1, 1]
       M[n, c, u, v] = S[n, c, u, v] / 56.0
       D: float32[3, 2, 7, 8]
       D[n, c, y, x] = X[n, c, y, x] - M[n, c, 0, 0]
       V: float32[3, 2, 1, 1]
       V[n, c, u, v] = sum[y < 7, x < 8](D[n, c, y, x] * D[n, c, y, x])
       Y[n, c, y, x] = D[n, c, y, x] * rsqrt(V[n, c, 0, 0] / 56.0 + 0.001) })"},
    {"that_keep_the_last_dimension", R"(kernel k(X: float32[6, 100]) -> (Y: float32[6, 1]) {
       S: float32[6, 1]
       S[i, u] = sum[k < 100](X[i, k])
       Y[i, u] = S[i, 0] / 100.0 })"},
    {"of_which_one_needs_another", R"(kernel k(X: float32[4, 90]) -> (P: int32[4]) {
       M: float32[4, 1]
       M[i, u] = max[k < 90](X[i, k])
       P[i] = min[k < 90](select(X[i, k] == M[i, 0], int32(k), 1000)) })"},
};

TEST(KnownRows, AreOneLaunchToo) {
  for (const Case& test : kKnownRows) {
    SCOPED_TRACE(test.name);
    const language::TextKernel text = kernel_of(test.text);
    const ir::Kernel loops = gpu_loops(text);
    EXPECT_EQ(ir::launched_statements(loops.body).size(), 1u) << ir::print(loops);
    EXPECT_NE(ir::print(loops).find("shuffle"), std::string::npos) << ir::print(loops);
    EXPECT_EQ(gpu_difference(text, loops, {}), "") << ir::print(loops);
  }
}

// Rows that one multiprocessor alone would take long for are in parts, of one order on every call.
TEST(KnownRows, AreDividedAmongBlocksWhereTheyAreLong) {
  for (const auto& [text, parts] :
       {std::pair{"kernel k(X: float32[1024, 1024]) -> (Y: float32[]) {\n"
                  "  Y[] = sum[i < 1024, j < 1024](X[i, j]) }",
                  "Y.rf: float32[256]"},
        std::pair{"kernel k(X: float32[3, 262144]) -> (Y: float32[3, 1]) {\n"
                  "  Y[i, u] = max[j < 262144](X[i, j]) }",
                  "Y.rf: float32[3, 1, 64]"}}) {
    const language::TextKernel kernel = kernel_of(text);
    const ir::Kernel loops = gpu_loops(kernel);
    EXPECT_EQ(ir::launched_statements(loops.body).size(), 2u) << ir::print(loops);
    EXPECT_NE(ir::print(loops).find(parts), std::string::npos) << ir::print(loops);
    EXPECT_EQ(gpu_difference(kernel, loops, {}), "");
  }
}

TEST(RowThreadsLeave, LongRowsTogetherWhereTheyAreManyOrShort) {
  for (const char* const text : {"kernel k(X: float32[400, 65536]) -> (Y: float32[400]) {\n"
                                 "  Y[i] = sum[j < 65536](X[i, j]) }",
                                 "kernel k(X: float32[3, 32768]) -> (Y: float32[3]) {\n"
                                 "  Y[i] = sum[j < 32768](X[i, j]) }",
                                 "kernel k(X: float32[n, 262144]) -> (Y: float32[n]) {\n"
                                 "  Y[i] = sum[j < 262144](X[i, j]) }"}) {
    const ir::Kernel loops = gpu_loops(kernel_of(text));
    EXPECT_EQ(ir::launched_statements(loops.body).size(), 1u) << ir::print(loops);
  }
}

// A window that slides is no row: neighbours read the same again.
TEST(RowThreadsLeave, WindowsThatSlide) {
  const ir::Kernel loops =
      gpu_loops(kernel_of("kernel k(X: float32[3, 64, 100]) -> (Y: float32[3, 29, 5]) {\n"
                          "  Y[n, i, j] = max[a < 8, b < 9](X[n, i * 2 + a, j * 20 + b]) }"));
  EXPECT_EQ(ir::print(loops).find("shuffle"), std::string::npos) << ir::print(loops);
}

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
}  // namespace kiln::testing::row_threads
