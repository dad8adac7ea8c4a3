#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const accumulate_in_locals = pass_named("accumulate_in_locals").run;

TEST(AccumulateInLocals, KeepsASumWhileItsLoopsRun) {
  expect_becomes(accumulate_in_locals,
                 R"(fn f(A: float32[n, l, l], C: float32[n]) { for t in 0..n bind(threadIdx.x) {
                   C[t] = 0.0
                   for k in 0..l { for j in 0..l { C[t] = C[t] + A[t, k, j] } } } })",
                 R"(fn f(A: float32[n, l, l], C: float32[n]) { for t in 0..n bind(threadIdx.x) {
                   allocate C.acc: float32[1] scope(local)
                   C.acc[0] = 0.0
                   for k in 0..l { for j in 0..l { C.acc[0] = C.acc[0] + A[t, k, j] } }
                   C[t] = C.acc[0] } })",
                 kCuda);
}

TEST(AccumulateInLocals, KeepsAllSumsOfALoop) {
  expect_becomes(accumulate_in_locals,
                 R"(fn f(A: float32[n, l], C: float32[n], D: float32[n]) {
                   for t in 0..n bind(threadIdx.x) {
                     C[t] = 0.0
                     D[t] = 1.0
                     for k in 0..l { C[t] = C[t] + A[t, k]  D[t] = D[t]*C[t] } } })",
                 R"(fn f(A: float32[n, l], C: float32[n], D: float32[n]) {
                   for t in 0..n bind(threadIdx.x) {
                     allocate D.acc: float32[1] scope(local)
                     allocate C.acc: float32[1] scope(local)
                     C.acc[0] = 0.0
                     D.acc[0] = 1.0
                     for k in 0..l { C.acc[0] = C.acc[0] + A[t, k]
                                     D.acc[0] = D.acc[0]*C.acc[0] }
                     C[t] = C.acc[0]
                     D[t] = D.acc[0] } })",
                 kCuda);
}

TEST(AccumulateInLocals, LeavesElementsThatTheLoopMovesOver) {
  expect_unchanged(accumulate_in_locals,
                   R"(fn f(A: float32[n], C: float32[n, n]) { for t in 0..n bind(threadIdx.x) {
                     C[0, t] = 0.0
                     for k in 0..n - 1 { C[k + 1, t] = C[k, t] + A[t] } } })",
                   kCuda);
}

TEST(AccumulateInLocals, LeavesALoopInWhichThreadsWait) {
  expect_unchanged(accumulate_in_locals,
                   R"(fn f(A: float32[n], C: float32[n]) { for t in 0..32 bind(threadIdx.x) {
                     C[t] = 0.0
                     for k in 0..n { barrier  C[t] = C[t] + A[k] } } })",
                   kCuda);
}

TEST(AccumulateInLocals, LeavesWhatAnotherStoreInFrontOfTheLoopNeeds) {
  expect_unchanged(accumulate_in_locals,
                   R"(fn f(A: float32[n], C: float32[n], D: float32[n]) {
                     for t in 0..n bind(threadIdx.x) {
                       C[t] = 0.0
                       D[t] = C[t]
                       for k in 0..n { C[t] = C[t] + A[k] } } })",
                   kCuda);
}

TEST(AccumulateInLocals, LeavesSumsOutsideOfThreads) {
  expect_unchanged(accumulate_in_locals,
                   R"(fn f(A: float32[n], C: float32[n]) { for b in 0..n bind(blockIdx.x) {
                     C[b] = 0.0
                     for k in 0..n { C[b] = C[b] + A[k] } } })",
                   kCuda);
}

}  // namespace
}  // namespace kiln::testing
