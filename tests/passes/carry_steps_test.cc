#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const carry_steps = pass_named("carry_steps").run;

TEST(CarrySteps, KeepsTheLastStepOfRowsSideBySide) {
  expect_becomes(carry_steps,
                 R"(fn f(X: float32[8, 4096], S: float32[8, 4096]) {
                   for o in 0..2 parallel {
                     for t in 0..4095 { for i in 0..4 unroll {
                       S[o*4 + i, t + 1] = S[o*4 + i, t] + X[o*4 + i, t + 1] } } } })",
                 R"(fn f(X: float32[8, 4096], S: float32[8, 4096]) {
                   for o in 0..2 parallel {
                     allocate s: float32[4] scope(local)
                     for i in 0..4 unroll { s[i] = S[o*4 + i, 0] }
                     for t in 0..4095 { for i in 0..4 unroll {
                       s[i] = s[i] + X[o*4 + i, t + 1]  S[o*4 + i, t + 1] = s[i] } } } })");
}

TEST(CarrySteps, KeepsOneElement) {
  expect_becomes(carry_steps,
                 R"(fn f(X: float32[4096], S: float32[4096]) {
                   for t in 0..4095 { S[t + 1] = max(X[t + 1], S[t]) } })",
                 R"(fn f(X: float32[4096], S: float32[4096]) {
                   allocate s: float32[1] scope(local)
                   s[0] = S[0]
                   for t in 0..4095 { s[0] = max(X[t + 1], s[0])  S[t + 1] = s[0] } })");
}

TEST(CarrySteps, ReadsNothingBeforeNoStep) {
  expect_becomes(carry_steps,
                 R"(fn f(X: float32[n], S: float32[n]) {
                   for t in 0..n - 1 { S[n - 2 - t] = S[n - 1 - t] + X[n - 2 - t] } })",
                 R"(fn f(X: float32[n], S: float32[n]) {
                   if 0 < n - 1 {
                     allocate s: float32[1] scope(local)
                     s[0] = S[n - 1]
                     for t in 0..n - 1 {
                       s[0] = s[0] + X[n - 2 - t]  S[n - 2 - t] = s[0] } } })");
}

TEST(CarrySteps, KeepsRowsUnderTheirGuard) {
  expect_becomes(carry_steps,
                 R"(fn f(X: float32[m, 64], S: float32[m, 64]) {
                   for b in 0..9 { for t in 0..63 { for i in 0..4 unroll {
                     if likely(b*4 + i < m) {
                       S[b*4 + i, t + 1] = S[b*4 + i, t]*0.5 + X[b*4 + i, t + 1] } } } } })",
                 R"(fn f(X: float32[m, 64], S: float32[m, 64]) {
                   for b in 0..9 {
                     allocate s: float32[4] scope(local)
                     for i in 0..4 unroll { if likely(b*4 + i < m) { s[i] = S[b*4 + i, 0] } }
                     for t in 0..63 { for i in 0..4 unroll { if likely(b*4 + i < m) {
                       s[i] = s[i]*0.5 + X[b*4 + i, t + 1]
                       S[b*4 + i, t + 1] = s[i] } } } } })");
}

void expect_left_alone(std::string_view step, std::string_view columns = "0..4 unroll") {
  expect_unchanged(carry_steps,
                   "fn f(X: float32[4096, 1024], S: float32[4096, 1024]) { for t in 0..4094 { "
                   "for i in " +
                       std::string(columns) + " { " + std::string(step) + " } } }");
}

TEST(CarrySteps, LeavesOtherStepsAlone) {
  expect_left_alone("S[t + 2, i] = S[t, i] + X[t, i]");      // two steps back
  expect_left_alone("S[t + 1, i] = S[t, i + 1] + X[t, i]");  // of another column
  expect_left_alone("S[t + 1, i] = S[t, i] + S[t + 1, i]");  // of another step
  expect_left_alone("S[t + 1, i] = S[t, i] + S[0, i]");      // of a certain one
  expect_left_alone("S[t + 1, i] = X[t + 1, i]");            // none
  expect_left_alone("S[0, i] = S[0, i] + X[t, i]");          // a sum, which stays in one place
  expect_left_alone("S[t + 1, 0] = S[t, 0] + X[t, i]");      // several iterations of one element
  expect_left_alone("if t < 9 { S[t + 1, i] = S[t, i] + X[t, i] }");
  expect_left_alone("if X[0, i] < 9.0 { S[t + 1, i] = S[t, i] + X[t, i] }");
}

TEST(CarrySteps, LeavesMoreThanRegistersHold) {
  expect_left_alone("S[t + 1, i] = S[t, i] + X[t + 1, i]", "0..16 unroll");
  expect_left_alone("S[t + 1, i] = S[t, i] + X[t + 1, i]", "0..64 vectorize");  // none waits long
  expect_left_alone("S[t + 1, i] = S[t, i] + X[t + 1, i]", "0..4");             // no registers
}

}  // namespace
}  // namespace kiln::testing
