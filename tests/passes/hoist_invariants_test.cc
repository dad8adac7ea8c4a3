#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const hoist_invariants = pass_named("hoist_invariants").run;

TEST(HoistInvariants, MovesAGuardOutOfAllLoopsItDoesNotDependOn) {
  expect_becomes(hoist_invariants,
                 R"(fn f(A: float32[m, n]) { for i in 0..8 { for t in 0..m { for u in 0..2 {
                   if i < n { A[t, i] = 0.0 } } } } })",
                 R"(fn f(A: float32[m, n]) { for i in 0..8 { if i < n { for t in 0..m {
                   for u in 0..2 { A[t, i] = 0.0 } } } } })");
}

TEST(HoistInvariants, LeavesAGuardOfTheLoopAlone) {
  expect_unchanged(hoist_invariants,
                   "fn f(A: float32[n]) { for i in 0..8 { if i < n { A[i] = 0.0 } } }");
}

TEST(HoistInvariants, LeavesAGuardThatReadsMemoryAlone) {
  expect_unchanged(hoist_invariants,
                   "fn f(A: int64[1]) { for i in 0..8 { if A[0] < 3 { A[0] = A[0] + 1 } } }");
}

TEST(HoistInvariants, KeepsTheLoopsOfALaunchOutermost) {
  expect_unchanged(
      hoist_invariants,
      "fn f(A: float32[n]) { for i in 0..8 bind(threadIdx.x) { if 0 < n { A[0] = 0.0 } } }");
}

}  // namespace
}  // namespace kiln::testing
