// Reductions whose iterations are divided among the threads of a block.
#include <gtest/gtest.h>

#include "compiler/ir/launch.h"
#include "compiler/language/evaluate/evaluate.h"
#include "tests/support/expect_error.h"
#include "tests/support/golden.h"
#include "tests/support/gpu_run.h"
#include "tests/support/kernels.h"

namespace kiln::testing::thread_reduction {
namespace {

struct Case {
  const char* name;
  const char* text;
  std::vector<std::vector<int64_t>> sizes;
};
std::ostream& operator<<(std::ostream& stream, const Case& test) { return stream << test.name; }

/// te's reduction tutorial: partial results in threads, of which each row has 16.
constexpr const char* kTutorial = R"(kernel rows(A: float32[n, m]) -> (B: float32[n]) {
  B[i] = sum[k < m](A[i, k])
  schedule cuda {
    split(B.k, factor=16)
    rfactor(B.k.inner)
    split(B.i, factor=8)
    bind(B.i.outer, blockIdx.x)
    bind(B.i.inner, threadIdx.y)
    bind(B.k.inner.v, threadIdx.x)
    compute_at(B.rf, B.k.inner.v)
  }
})";

const Case kCases[] = {
    {"rfactor_over_threads", kTutorial, {{8, 16}, {13, 37}, {1, 1}, {3, 0}}},
    {"part_of_the_row",
     R"(kernel k(A: float32[n, m]) -> (B: float32[n]) {
       B[i] = sum[k < m](A[i, k])
       schedule cuda { split(B.k, factor=13) bind(B.i, blockIdx.x) bind(B.k.inner, threadIdx.x) } })",
     {{4, 26}, {2, 41}, {3, 5}}},
    {"all_by_one_block",
     R"(kernel k(A: float32[n, m]) -> (B: float32[]) {
       B[] = sum[i < n, k < m](A[i, k])
       schedule cuda { split(B.k, factor=8) split(B.i, factor=3)
         bind(B.k.inner, threadIdx.x) bind(B.i.inner, threadIdx.y) } })",
     {{7, 20}, {2, 3}}},
    {"condition_and_start",
     R"(kernel k(A: int32[n, m]) -> (B: int32[n]) {
       B[i] = min[k < m](A[i, k], where=A[i, k] > 0, init=2)
       schedule cuda { split(B.k, factor=8) split(B.i, factor=4) bind(B.i.outer, blockIdx.x)
         bind(B.i.inner, threadIdx.y) bind(B.k.inner, threadIdx.x) } })",
     {{9, 21}, {1, 3}}},
    {"start_from_a_tensor",
     R"(kernel k(A: float32[n, m], X: float32[n]) -> (B: float32[n]) {
       B[i] = max[k < m](A[i, k], init=X[i])
       schedule cuda { split(B.k, factor=8) bind(B.i, blockIdx.x) bind(B.k.inner, threadIdx.x) } })",
     {{4, 20}, {2, 0}}},
    {"two_values",
     R"(kernel k(A: float32[n, m]) -> (P.v0: int64[n], P.v1: float32[n]) {
       reducer argmax((x0: int64, x1: float32), (y0, y1)) =
         if_then_else(x1 > y1 || x1 == y1 && x0 < y0, x0, y0),
         if_then_else(x1 > y1 || x1 == y1 && x0 < y0, x1, y1) identity 1000000, -3.4028235e+38
       P.v0[i], P.v1[i] = argmax[k < m](k, A[i, k])
       schedule cuda { split(P.v0.k, factor=8) bind(P.v0.i, blockIdx.x) bind(P.v0.k.inner, threadIdx.x) } })",
     {{5, 30}, {2, 6}}},
    {"softmax_in_one_launch",
     R"(kernel k(X: float32[m, n]) -> (Y: float32[m, n]) {
       M: float32[m]
       M[i] = max[k < n](X[i, k])
       S: float32[m]
       S[i] = sum[k < n](exp(X[i, k] - M[i]))
       Y[i, j] = exp(X[i, j] - M[i]) / S[i]
       schedule cuda { split(Y.j, factor=8) bind(Y.i, blockIdx.x) bind(Y.j.inner, threadIdx.x)
         compute_at(S, Y.i) compute_at(M, Y.i)
         split(M.k, factor=8) bind(M.k.inner, threadIdx.x)
         split(S.k, factor=8) bind(S.k.inner, threadIdx.x) } })",
     {{5, 19}, {3, 8}}},
};

class ThreadReduction : public ::testing::TestWithParam<Case> {};

TEST_P(ThreadReduction, GivesWhatTheDefinitionSaysInOneLaunchWithoutARace) {
  const language::TextKernel text = kernel_of(GetParam().text);
  const ir::Kernel loops = gpu_loops(text);
  EXPECT_EQ(ir::launched_statements(loops.body).size(), 1u);
  for (const std::vector<int64_t>& sizes : GetParam().sizes)
    EXPECT_EQ(gpu_difference(text, loops, sizes), "");
}

INSTANTIATE_TEST_SUITE_P(All, ThreadReduction, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ThreadReductionLoops, HalveThePartsOfARow) {
  const language::TextKernel text = kernel_of(kTutorial);
  expect_golden("thread_reduction.ir",
                lowered_text(text.kernel, text.schedules[0].second,
                             Target{TargetKind::Cuda, "sm_90"}, CompileOptions{}, ""));
}

void expect_refused(const std::string& steps, const std::string& sentence,
                    const CompileOptions& options = {}) {
  const std::string text = fmt::format(R"(kernel k(A: float32[n, m]) -> (B: float32[n]) {{
    B[i] = sum[k < m](A[i, k])
    schedule cuda {{ {} }} }})",
                                       steps);
  const language::TextKernel kernel = kernel_of(text);
  expect_error([&] { gpu_loops(kernel, options); }, ErrorKind::Unsupported, sentence);
}

TEST(ThreadReductionErrors, OfAnExtentThatIsNoConstant) {
  expect_refused("bind(B.i, blockIdx.x) bind(B.k, threadIdx.x)",
                 "cannot bind k on a GPU: the threads of k combine their parts of B in shared "
                 "memory, but k has m iterations, which is no constant; split k by a factor first");
}

TEST(ThreadReductionErrors, OfNothing) {
  const language::TextKernel kernel = kernel_of(R"(kernel k(A: float32[n, 0]) -> (B: float32[n]) {
    B[i] = sum[k < 0](A[i, k])
    schedule cuda { bind(B.i, blockIdx.x) bind(B.k, threadIdx.x) } })");
  expect_error([&] { gpu_loops(kernel); }, ErrorKind::Unsupported,
               "cannot bind k on a GPU: it has no iterations, so no thread would store what B "
               "starts from; leave k unbound");
}

TEST(ThreadReductionErrors, OfALoopOverDataInside) {
  expect_refused("split(B.k, factor=8) bind(B.k.inner, threadIdx.x) reorder(B.k.inner, B.i)",
                 "cannot bind k.inner on a GPU: i of B stands inside its reduction, of which "
                 "threads combine one element at a time; reorder i to stand before the reduction "
                 "axes");
}

TEST(ThreadReductionErrors, OfVirtualThreads) {
  expect_refused("split(B.k, factor=8) bind(B.i, blockIdx.x) bind(B.k.inner, vthread)",
                 "cannot bind k.inner to vthread on a GPU: it is a reduction axis, whose "
                 "iterations threadIdx alone can divide; leave it unbound");
}

TEST(ThreadReductionErrors, OfAnotherOrderWhereStrict) {
  expect_refused("split(B.k, factor=8) bind(B.i, blockIdx.x) bind(B.k.inner, threadIdx.x)",
                 "cannot bind k.inner on a GPU: threads would combine the values of B in another "
                 "order than its definition, which strict does not allow; leave k.inner unbound",
                 CompileOptions{.strict = true});
}

}  // namespace
}  // namespace kiln::testing::thread_reduction
