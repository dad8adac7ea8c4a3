#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const divide_unsigned = pass_named("divide_unsigned").run;

TEST(DivideUnsigned, DividesWhatIsNotNegativeByWhatIsPositive) {
  expect_becomes(divide_unsigned,
                 R"(fn f(A: float32[m, n], C: float32[n, m]) { for b in 0..9 bind(blockIdx.x) {
                   for t in 0..256 bind(threadIdx.x) { if b*256 + t < m*n {
                     C[floormod(b*256 + t, n), floordiv(b*256 + t, n)] = A[floordiv(t, 16), 0]
                 } } } })",
                 R"(fn f(A: float32[m, n], C: float32[n, m]) { for b in 0..9 bind(blockIdx.x) {
                   for t in 0..256 bind(threadIdx.x) { if b*256 + t < m*n {
                     C[int64(truncmod(uint64(b*256 + t), uint64(n))),
                       int64(truncdiv(uint64(b*256 + t), uint64(n)))] =
                       A[int64(truncdiv(uint64(t), 16)), 0]
                 } } } })",
                 kCuda);
}

TEST(DivideUnsigned, LeavesWhatMayBeNegativeOrZero) {
  expect_unchanged(divide_unsigned,
                   R"(fn f[n, m](I: int64[n], C: float32[n]) { for i in 0..n bind(blockIdx.x) {
                     C[floordiv(i - 3, 2)] = 0.0  C[floordiv(i, m - 5)] = 1.0
                     C[floormod(I[i], 2)] = 2.0 } })",
                   kCuda);
}

TEST(DivideUnsigned, LeavesTheExtentsOfALaunch) {
  expect_unchanged(divide_unsigned,
                   R"(fn f(C: float32[n]) {
                     for b in 0..floordiv(n + 255, 256) bind(blockIdx.x) { C[b] = 0.0 } })",
                   kCuda);
}

TEST(DivideUnsigned, DividesWhatTheElementsOfAnIndexAre) {
  expect_becomes(divide_unsigned,
                 R"(fn f(C: float32[n]) { for b in 0..n bind(blockIdx.x) {
                   C[floormod(floordiv(b, 8), 4)] = 0.0 } })",
                 R"(fn f(C: float32[n]) { for b in 0..n bind(blockIdx.x) {
                   C[int64(truncmod(uint64(int64(truncdiv(uint64(b), 8))), 4))] =
                     0.0 } })",
                 kCuda);
}

}  // namespace
}  // namespace kiln::testing
