#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const divide_once = pass_named("divide_once").run;

TEST(DivideOnce, DividesTheFirstLaneWhereTheOthersAreOfTheSameMultiple) {
  expect_becomes(divide_once,
                 R"(fn f[n, s](A: float32[n], C: float32[n]) { for i in 0..n {
                   C[ramp(i, 1, 16)] = A[floormod(ramp(i + s, 1, 16), broadcast(n, 16))] } })",
                 R"(fn f[n, s](A: float32[n], C: float32[n]) { for i in 0..n {
                   if floormod(i + s, n) + 15 < n {
                     C[ramp(i, 1, 16)] = A[ramp(floormod(i + s, n), 1, 16)]
                   } else {
                     C[ramp(i, 1, 16)] = A[floormod(ramp(i + s, 1, 16), broadcast(n, 16))]
                   } } })");
}

TEST(DivideOnce, AsksOnceForAQuotientAndItsRemainder) {
  expect_becomes(divide_once,
                 R"(fn f[n](A: float32[n], B: float32[n], C: float32[n]) { for i in 0..n {
                   C[ramp(i*8, 2, 8)] = A[floordiv(ramp(i*8, 2, 8), broadcast(100, 8))]
                                      + B[floormod(ramp(i*8, 2, 8), broadcast(100, 8))] } })",
                 R"(fn f[n](A: float32[n], B: float32[n], C: float32[n]) { for i in 0..n {
                   if floormod(i*8, 100) + 14 < 100 {
                     C[ramp(i*8, 2, 8)] = A[broadcast(floordiv(i*8, 100), 8)]
                                        + B[ramp(floormod(i*8, 100), 2, 8)]
                   } else {
                     C[ramp(i*8, 2, 8)] = A[floordiv(ramp(i*8, 2, 8), broadcast(100, 8))]
                                        + B[floormod(ramp(i*8, 2, 8), broadcast(100, 8))]
                   } } })");
}

TEST(DivideOnce, LeavesDivisorsThatAVectorGoesPast) {
  expect_unchanged(divide_once,
                   R"(fn f(A: float32[40], C: float32[64]) { for i in 0..4 {
                     C[ramp(i*16, 1, 16)] = A[floormod(ramp(i*16, 1, 16), broadcast(40, 16))] } })");
}

TEST(DivideOnce, LeavesDivisionsOfOneLaneAndOfOtherVectors) {
  expect_unchanged(divide_once,
                   R"(fn f[n](A: float32[n], I: int64[n], C: float32[n]) {
                     for i in 0..n { C[i] = A[floormod(i + 3, n)] }
                     C[ramp(0, 1, 8)] = A[floormod(I[ramp(0, 1, 8)], broadcast(n, 8))]
                     C[ramp(0, 1, 8)] = A[floormod(ramp(0, -1, 8), broadcast(n, 8))]
                     C[ramp(0, 1, 8)] = A[floormod(ramp(I[0], 1, 8), broadcast(n, 8))] })");
}

}  // namespace
}  // namespace kiln::testing
