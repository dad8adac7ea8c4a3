#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const lay_out_lanes = pass_named("lay_out_lanes").run;

TEST(LayOutLanes, PutsTheDimensionOfTheLanesLast) {
  expect_becomes(lay_out_lanes,
                 R"(fn f(A: float32[16, 10], C: float32[16, 10]) {
                   allocate E: float32[16, 10] scope(global)
                   for j in 0..10 { for i in 0..16 vectorize { E[i, j] = A[i, j] + 1.0 } }
                   for k in 0..10 { for l in 0..16 vectorize { C[l, k] = E[l, 9 - k] } } })",
                 R"(fn f(A: float32[16, 10], C: float32[16, 10]) {
                   allocate E: float32[10, 16] scope(global)
                   for j in 0..10 { for i in 0..16 vectorize { E[j, i] = A[i, j] + 1.0 } }
                   for k in 0..10 { for l in 0..16 vectorize { C[l, k] = E[9 - k, l] } } })");
}

TEST(LayOutLanes, KeepsTheOrderOfTheOtherDimensions) {
  expect_becomes(lay_out_lanes,
                 R"(fn f(C: float32[8]) {
                   allocate E: float32[8, 2, 3] scope(global)
                   for i in 0..8 vectorize { E[i, 1, 2] = 1.0 }
                   C[0] = E[0, 1, 2] })",
                 R"(fn f(C: float32[8]) {
                   allocate E: float32[2, 3, 8] scope(global)
                   for i in 0..8 vectorize { E[1, 2, i] = 1.0 }
                   C[0] = E[1, 2, 0] })");
}

TEST(LayOutLanes, LeavesABufferWhoseVectorsGoAlongSeveralDimensions) {
  expect_unchanged(lay_out_lanes,
                   R"(fn f(C: float32[8, 8]) {
                     allocate E: float32[8, 8] scope(global)
                     for j in 0..8 { for i in 0..8 vectorize { E[i, j] = 1.0 } }
                     for j in 0..8 { for i in 0..8 vectorize { C[j, i] = E[j, i] } } })");
  expect_unchanged(lay_out_lanes,
                   R"(fn f(C: float32[8]) {
                     allocate E: float32[8, 8] scope(global)
                     for i in 0..8 vectorize { E[i, i] = 1.0 }
                     C[0] = E[0, 0] })");
}

TEST(LayOutLanes, LeavesParameters) {
  expect_unchanged(lay_out_lanes,
                   R"(fn f(C: float32[8, 4]) { for i in 0..8 vectorize { C[i, 1] = 1.0 } })");
}

}  // namespace
}  // namespace kiln::testing
