#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const collapse_parallel = pass_named("collapse_parallel").run;

TEST(CollapseParallel, MakesOneLoopOfAPerfectNest) {
  expect_becomes(collapse_parallel,
                 "fn f(A: float32[n, m]) { for i in 0..n parallel { for j in 0..m parallel { A[i, "
                 "j] = 0.0 } } }",
                 "fn f(A: float32[n, m]) { for f in 0..n*m parallel { A[floordiv(f, m), "
                 "floormod(f, m)] = 0.0 } }");
}

TEST(CollapseParallel, LooksThroughTheChoiceBetweenFullAndPartialTiles) {
  expect_becomes(collapse_parallel,
                 R"(fn f(A: float32[n, m]) { for i in 0..n parallel {
                   if i < 7 { for j in 0..m parallel { A[i, j] = 0.0 } }
                   else { for k in 0..m parallel { A[i, k] = 1.0 } } } })",
                 R"(fn f(A: float32[n, m]) { for f in 0..n*m parallel {
                   if floordiv(f, m) < 7 { A[floordiv(f, m), floormod(f, m)] = 0.0 }
                   else { A[floordiv(f, m), floormod(f, m)] = 1.0 } } })");
}

TEST(CollapseParallel, SplitsALoopOverSeveralParallelOnes) {
  expect_becomes(collapse_parallel,
                 R"(fn f(A: float32[n, m], B: float32[n]) { for i in 0..n parallel {
                   for j in 0..m parallel { A[i, j] = 0.0 }
                   for k in 0..2 parallel { B[i] = 1.0 } } })",
                 R"(fn f(A: float32[n, m], B: float32[n]) {
                   for f in 0..n*m parallel { A[floordiv(f, m), floormod(f, m)] = 0.0 }
                   for g in 0..n*2 parallel { B[floordiv(g, 2)] = 1.0 } })");
}

TEST(CollapseParallel, RunsTheInnerLoopSeriallyWhereTheOuterOneDoesMore) {
  const ir::Kernel kernel =
      expect_becomes(collapse_parallel,
                     R"(fn f(A: float32[n, m], B: float32[n]) { for i in 0..n parallel {
                       B[i] = 0.0  for j in 0..m parallel { A[i, j] = 0.0 } } })",
                     R"(fn f(A: float32[n, m], B: float32[n]) { for i in 0..n parallel {
                       B[i] = 0.0  for j in 0..m { A[i, j] = 0.0 } } })");
  EXPECT_EQ(kernel.notes, std::vector<std::string>{
                              "j is parallel and runs serially inside i, which is parallel"});
}

TEST(CollapseParallel, RunsTheInnerLoopSeriallyWhereItsExtentDependsOnTheOuterOne) {
  expect_becomes(
      collapse_parallel,
      "fn f(A: float32[n, n]) { for i in 0..n parallel { for j in 0..i parallel { A[i, j] = 0.0 } "
      "} }",
      "fn f(A: float32[n, n]) { for i in 0..n parallel { for j in 0..i { A[i, j] = 0.0 } } }");
}

/// The condition is asked once, before the iterations that change what it reads.
TEST(CollapseParallel, KeepsAConditionOnMemoryOutside) {
  expect_becomes(collapse_parallel,
                 R"(fn f(B: int64[n, m]) { for i in 0..n parallel {
                   if B[i, 0] < 7 { for j in 0..m parallel { B[i, j] = 9 } } } })",
                 R"(fn f(B: int64[n, m]) { for i in 0..n parallel {
                   if B[i, 0] < 7 { for j in 0..m { B[i, j] = 9 } } } })");
}

TEST(CollapseParallel, KeepsAnExtentInMemoryOutside) {
  expect_becomes(collapse_parallel,
                 R"(fn f(B: int64[n]) { for i in 0..n parallel {
                   for j in 0..B[0] parallel { B[j] = 3 } } })",
                 R"(fn f(B: int64[n]) { for i in 0..n parallel {
                   for j in 0..B[0] { B[j] = 3 } } })");
}

}  // namespace
}  // namespace kiln::testing
