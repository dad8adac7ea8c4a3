#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const unroll_loops = pass_named("unroll_loops").run;

TEST(UnrollLoops, PutsTheIterationsInOrder) {
  expect_becomes(unroll_loops,
                 "fn f(A: float32[3], B: float32[3]) { for i in 0..3 unroll { A[i] = B[i] } }",
                 "fn f(A: float32[3], B: float32[3]) { A[0] = B[0]  A[1] = B[1]  A[2] = B[2] }");
}

TEST(UnrollLoops, UnrollsANestFromTheInside) {
  expect_becomes(
      unroll_loops,
      "fn f(A: int32[2, 2]) { for i in 0..2 unroll { for j in 0..2 unroll { A[i, j] = 7 } } }",
      "fn f(A: int32[2, 2]) { A[0, 0] = 7  A[0, 1] = 7  A[1, 0] = 7  A[1, 1] = 7 }");
}

TEST(UnrollLoops, LeavesOtherLoopsAlone) {
  expect_unchanged(unroll_loops, "fn f(A: float32[n]) { for i in 0..n parallel { A[i] = 0.0 } }");
}

/// NVRTC unrolls what is marked, in less time than it would read the copies in.
TEST(UnrollLoops, LeavesAGpusLoopsToNvrtc) {
  const char* const loops = R"(fn f(A: float32[n, 64], C: float32[n]) {
    for b in 0..n bind(blockIdx.x) { for t in 0..8 bind(threadIdx.x) {
      allocate c: float32[8, 8] scope(local)
      for k in 0..8 unroll { for i in 0..8 unroll { for j in 0..8 unroll {
        c[i, j] = c[i, j] + A[b, k*8 + i]*A[b, k*8 + j] } } }
      C[b] = c[0, 0] } } })";
  const ir::Kernel kernel = run_pass(unroll_loops, loops, kCuda);
  EXPECT_TRUE(ir::equal_kernels(kernel, ir::parse(loops))) << ir::print(kernel);
}

/// What NVRTC may find too large to unroll: elements of a thread would lie in memory.
TEST(UnrollLoops, WritesOutWhatIsLargeOnAGpuToo) {
  const std::string text = ir::print(run_pass(unroll_loops, R"(fn f(A: float32[n, 4]) {
    for b in 0..n bind(blockIdx.x) { for i in 0..4 unroll { for k in 0..1000 unroll {
      A[b, i] = A[b, i] + 1.0 } } } })",
                                              kCuda));
  EXPECT_EQ(text.find("for i in"), std::string::npos) << text;
  EXPECT_NE(text.find("A[b, 3] = A[b, 3] + 1.0"), std::string::npos) << text;
  EXPECT_NE(text.find("for k in 0..1000 unroll"), std::string::npos) << text;
}

TEST(UnrollLoops, NeedsAConstantExtent) {
  expect_error(
      [] { run_pass(unroll_loops, "fn f(A: float32[n]) { for k in 0..n unroll { A[k] = 0.0 } }"); },
      ErrorKind::Unsupported, "cannot unroll k: its extent n is not a constant");
  expect_error(
      [] {
        run_pass(unroll_loops, R"(fn f(A: float32[n, 5]) {
          for b in 0..5 bind(blockIdx.x) { for k in 0..n unroll { A[k, b] = 0.0 } } })",
                 kCuda);
      },
      ErrorKind::Unsupported, "cannot unroll k: its extent n is not a constant");
}

TEST(UnrollLoops, RefusesMoreCopiesThanTheLimit) {
  expect_error(
      [] {
        run_pass(unroll_loops, "fn f(A: float32[5000]) { for k in 0..5000 unroll { A[k] = 0.0 } }");
      },
      ErrorKind::ResourceExhausted, "unrolling k makes 5000 copies of its body; the limit is 4096");
  expect_error(
      [] {
        run_pass(unroll_loops, R"(fn f(A: float32[5000, 5]) {
          for b in 0..5 bind(blockIdx.x) { for k in 0..5000 unroll { A[k, b] = 0.0 } } })",
                 kCuda);
      },
      ErrorKind::ResourceExhausted, "unrolling k makes 5000 copies of its body; the limit is 4096");
}

TEST(UnrollLoops, CountsTheCopiesOfANest) {
  expect_error(
      [] {
        run_pass(unroll_loops, R"(fn f(A: float32[100, 100]) {
          for i in 0..100 unroll { for k in 0..100 unroll { A[i, k] = 0.0 } } })");
      },
      ErrorKind::ResourceExhausted,
      "unrolling k makes 10000 copies of its body; the limit is 4096");
}

}  // namespace
}  // namespace kiln::testing
