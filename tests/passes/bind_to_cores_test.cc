#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const bind_to_cores = pass_named("bind_to_cores").run;

TEST(BindToCores, RunsBlocksOnCoresAndThreadsAsVectors) {
  const ir::Kernel kernel = expect_becomes(bind_to_cores,
                                           R"(fn f(A: float32[n, 32]) {
      for i in 0..n bind(blockIdx.x) { for j in 0..32 bind(threadIdx.x) { A[i, j] = 0.0 } } })",
                                           R"(fn f(A: float32[n, 32]) {
      for i in 0..n parallel { for j in 0..32 vectorize { A[i, j] = 0.0 } } })");
  EXPECT_EQ(kernel.notes, (std::vector<std::string>{"blockIdx.x runs on the cores of the CPU",
                                                    "threadIdx.x runs as vectors on the CPU"}));
}

TEST(BindToCores, RunsThreadsSeriallyWhereTheyDoNotLieSideBySide) {
  expect_becomes(bind_to_cores,
                 "fn f(A: float32[32, n]) { for j in 0..32 bind(threadIdx.x) { A[j, 0] = 0.0 } }",
                 "fn f(A: float32[32, n]) { for j in 0..32 { A[j, 0] = 0.0 } }");
}

TEST(BindToCores, RunsThreadsSeriallyWhenTheirNumberIsNotConstant) {
  expect_becomes(bind_to_cores,
                 "fn f(A: float32[n]) { for j in 0..n bind(threadIdx.x) { A[j] = 0.0 } }",
                 "fn f(A: float32[n]) { for j in 0..n { A[j] = 0.0 } }");
}

TEST(BindToCores, MakesOnlyTheInnermostThreadsVectors) {
  expect_becomes(bind_to_cores,
                 R"(fn f(A: float32[4, 8]) { for i in 0..4 bind(threadIdx.y) {
                   for j in 0..8 bind(threadIdx.x) { A[i, j] = 0.0 } } })",
                 R"(fn f(A: float32[4, 8]) { for i in 0..4 {
                   for j in 0..8 vectorize { A[i, j] = 0.0 } } })");
}

TEST(BindToCores, LeavesOtherLoopsAlone) {
  expect_unchanged(bind_to_cores, "fn f(A: float32[n]) { for i in 0..n parallel { A[i] = 0.0 } }");
}

}  // namespace
}  // namespace kiln::testing
