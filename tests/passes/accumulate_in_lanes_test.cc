#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const accumulate_in_lanes = pass_named("accumulate_in_lanes").run;

TEST(AccumulateInLanes, CombinesTheLanesBehindTheLoop) {
  expect_becomes(accumulate_in_lanes,
                 R"(fn f(A: float32[n, 64], S: float32[n]) { for i in 0..n parallel {
                   for k in 0..2 {
                     S[i] = reduce_sum(S[i], A[ramp(i*64 + k*32, 1, 32)], reassociate) } } })",
                 R"(fn f(A: float32[n, 64], S: float32[n]) { for i in 0..n parallel {
                   allocate S.lanes: float32[32] scope(local)
                   S.lanes[ramp(0, 1, 32)] = broadcast(0.0, 32)
                   for k in 0..2 {
                     S.lanes[ramp(0, 1, 32)] = S.lanes[ramp(0, 1, 32)]
                                               + A[ramp(i*64 + k*32, 1, 32)] }
                   S[i] = reduce_sum(S[i], S.lanes[ramp(0, 1, 32)], reassociate) } })");
}

TEST(AccumulateInLanes, StandsAroundAllLoopsThatAddToOneElement) {
  expect_becomes(accumulate_in_lanes,
                 R"(fn f(A: float32[n, 32], S: float32[1]) { for i in 0..n { for k in 0..4 {
                   S[0] = reduce_max(S[0], A[ramp(i*32 + k*8, 1, 8)], reassociate) } } })",
                 R"(fn f(A: float32[n, 32], S: float32[1]) {
                   allocate S.lanes: float32[8] scope(local)
                   S.lanes[ramp(0, 1, 8)] = broadcast(-inf, 8)
                   for i in 0..n { for k in 0..4 {
                     S.lanes[ramp(0, 1, 8)] = max(S.lanes[ramp(0, 1, 8)],
                                                  A[ramp(i*32 + k*8, 1, 8)]) } }
                   S[0] = reduce_max(S[0], S.lanes[ramp(0, 1, 8)], reassociate) })");
}

TEST(AccumulateInLanes, KeepsLanesForEachElementOfUnrolledLoops) {
  expect_becomes(accumulate_in_lanes,
                 R"(fn f(A: float32[128], S: float32[4]) { for k in 0..4 { for i in 0..4 unroll {
                   S[i] = reduce_sum(S[i], A[ramp(i*32 + k*8, 1, 8)], reassociate) } } })",
                 R"(fn f(A: float32[128], S: float32[4]) {
                   allocate S.lanes: float32[32] scope(local)
                   for i in 0..4 unroll { S.lanes[ramp(i*8, 1, 8)] = broadcast(0.0, 8) }
                   for k in 0..4 { for i in 0..4 unroll {
                     S.lanes[ramp(i*8, 1, 8)] = S.lanes[ramp(i*8, 1, 8)]
                                                + A[ramp(i*32 + k*8, 1, 8)] } }
                   for i in 0..4 unroll {
                     S[i] = reduce_sum(S[i], S.lanes[ramp(i*8, 1, 8)], reassociate) } })");
}

// Where there is no such element, neither may the lanes be added to it.
TEST(AccumulateInLanes, CombinesUnderTheConditionsOfAnElement) {
  expect_becomes(accumulate_in_lanes,
                 R"(fn f(A: float32[128], S: float32[n]) { for k in 0..4 { for i in 0..4 unroll {
                   if i < n { if k < n {
                     S[i] = reduce_sum(S[i], A[ramp(i*32 + k*8, 1, 8)], reassociate) } } } } })",
                 R"(fn f(A: float32[128], S: float32[n]) {
                   allocate S.lanes: float32[32] scope(local)
                   for i in 0..4 unroll { S.lanes[ramp(i*8, 1, 8)] = broadcast(0.0, 8) }
                   for k in 0..4 { for i in 0..4 unroll { if i < n { if k < n {
                     S.lanes[ramp(i*8, 1, 8)] = S.lanes[ramp(i*8, 1, 8)]
                                                + A[ramp(i*32 + k*8, 1, 8)] } } } }
                   for i in 0..4 unroll { if likely(i < n) {
                     S[i] = reduce_sum(S[i], S.lanes[ramp(i*8, 1, 8)], reassociate) } } })");
}

TEST(AccumulateInLanes, LeavesElementsOfSomeIterationsAlone) {
  expect_unchanged(accumulate_in_lanes,
                   R"(fn f(A: float32[128], S: float32[n]) { for k in 0..4 { for i in 0..4 unroll {
                     if i + k < n {
                       S[i] = reduce_sum(S[i], A[ramp(i*32 + k*8, 1, 8)], reassociate) } } } })");
}

TEST(AccumulateInLanes, LeavesMoreLanesThanRegistersHoldAlone) {
  expect_unchanged(accumulate_in_lanes,
                   R"(fn f(A: float32[n], S: float32[64]) { for k in 0..n { for i in 0..64 unroll {
                     S[i] = reduce_sum(S[i], A[ramp(k*16, 1, 16)], reassociate) } } })");
}

TEST(AccumulateInLanes, LeavesWhatMustBeInOrderAlone) {
  expect_unchanged(accumulate_in_lanes,
                   R"(fn f(A: float32[n], S: float32[1]) { for k in 0..n {
                     S[0] = reduce_sum(S[0], A[ramp(k*8, 1, 8)]) } })");
}

TEST(AccumulateInLanes, LeavesAnElementThatTheLoopReadsAlone) {
  expect_unchanged(accumulate_in_lanes,
                   R"(fn f(A: float32[n], S: float32[1], B: float32[n]) { for k in 0..n {
                     S[0] = reduce_sum(S[0], A[ramp(k*8, 1, 8)], reassociate)
                     B[k] = S[0] } })");
}

TEST(AccumulateInLanes, LeavesAnotherElementEachTimeAlone) {
  expect_unchanged(accumulate_in_lanes,
                   R"(fn f(A: float32[n], S: float32[n]) { for k in 0..n {
                     S[k] = reduce_sum(S[k], A[ramp(k*8, 1, 8)], reassociate) } })");
}

}  // namespace
}  // namespace kiln::testing
