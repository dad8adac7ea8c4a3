#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const cut_unrolled_loops = pass_named("cut_unrolled_loops").run;

TEST(CutUnrolledLoops, FreesCopiesThatAllThreadsRun) {
  expect_becomes(cut_unrolled_loops,
                 R"(fn f(X: float32[1000], Y: float32[1000]) {
                   for t in 0..32 bind(threadIdx.x) {
                     for j in 0..8 unroll { for l in 0..4 unroll {
                       if likely(j*128 + t*4 + l < 1000) { Y[j*128 + t*4 + l] = X[l] } } } } })",
                 R"(fn f(X: float32[1000], Y: float32[1000]) {
                   for t in 0..32 bind(threadIdx.x) {
                     for j in 0..7 unroll { for l in 0..4 unroll {
                       if likely(j*128 + t*4 + l < 1000) { Y[j*128 + t*4 + l] = X[l] } } }
                     for l in 0..4 unroll {
                       if likely(7*128 + t*4 + l < 1000) { Y[7*128 + t*4 + l] = X[l] } } } })",
                 kCuda);
}

/// The first part ends where the first of several guards does; what is left is looked at again.
TEST(CutUnrolledLoops, CutsAtEachGuard) {
  expect_becomes(cut_unrolled_loops,
                 R"(fn f(X: float32[1000], Y: float32[1000]) {
                   for t in 0..32 bind(threadIdx.x) {
                     for j in 0..8 unroll {
                       if likely(j*32 + t < 200) { X[j*32 + t] = 0.0 }
                       if likely(j*32 + t < 100) { Y[j*32 + t] = 0.0 } } } })",
                 R"(fn f(X: float32[1000], Y: float32[1000]) {
                   for t in 0..32 bind(threadIdx.x) {
                     for j in 0..3 unroll {
                       if likely(j*32 + t < 200) { X[j*32 + t] = 0.0 }
                       if likely(j*32 + t < 100) { Y[j*32 + t] = 0.0 } }
                     for j in 0..3 unroll {
                       if likely((j + 3)*32 + t < 200) { X[(j + 3)*32 + t] = 0.0 }
                       if likely((j + 3)*32 + t < 100) { Y[(j + 3)*32 + t] = 0.0 } }
                     for j in 0..2 unroll {
                       if likely((j + 3 + 3)*32 + t < 200) { X[(j + 3 + 3)*32 + t] = 0.0 }
                       if likely((j + 3 + 3)*32 + t < 100) { Y[(j + 3 + 3)*32 + t] = 0.0 } } } })",
                 kCuda);
}

void expect_left_alone(std::string_view loops) {
  expect_unchanged(cut_unrolled_loops,
                   "fn f(X: float32[1000], Y: float32[n]) { " + std::string(loops) + " }", kCuda);
}

TEST(CutUnrolledLoops, LeavesOtherLoopsAlone) {
  // One that the call ends, one that fails for some thread in the first copy, one of all copies.
  expect_left_alone(
      "for t in 0..32 bind(threadIdx.x) { for j in 0..8 unroll { "
      "if likely(j*32 + t < n) { Y[j*32 + t] = 0.0 } } }");
  expect_left_alone(
      "for t in 0..32 bind(threadIdx.x) { for j in 0..8 unroll { "
      "if likely(j + t*8 < 30) { X[j + t*8] = 0.0 } } }");
  expect_left_alone(
      "for t in 0..32 bind(threadIdx.x) { for j in 0..8 unroll { "
      "if likely(j*32 + t < 256) { X[j*32 + t] = 0.0 } } }");
  expect_left_alone(
      "for t in 0..32 bind(threadIdx.x) { for j in 0..8 { "
      "if likely(j*32 + t < 200) { X[j*32 + t] = 0.0 } } }");
  // Of the host, and by what memory says.
  expect_left_alone(
      "for j in 0..8 unroll { for t in 0..32 bind(threadIdx.x) { "
      "if likely(j*32 + t < 200) { X[j*32 + t] = 0.0 } } }");
  expect_left_alone(
      "for t in 0..32 bind(threadIdx.x) { for j in 0..8 unroll { "
      "if X[j] < 1.0 { X[j*32 + t] = 0.0 } } }");
}

}  // namespace
}  // namespace kiln::testing
