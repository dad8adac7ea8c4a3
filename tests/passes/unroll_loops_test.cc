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

TEST(UnrollLoops, NeedsAConstantExtent) {
  expect_error(
      [] { run_pass(unroll_loops, "fn f(A: float32[n]) { for k in 0..n unroll { A[k] = 0.0 } }"); },
      ErrorKind::Unsupported, "cannot unroll k: its extent n is not a constant");
}

TEST(UnrollLoops, RefusesMoreCopiesThanTheLimit) {
  expect_error(
      [] {
        run_pass(unroll_loops, "fn f(A: float32[5000]) { for k in 0..5000 unroll { A[k] = 0.0 } }");
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
