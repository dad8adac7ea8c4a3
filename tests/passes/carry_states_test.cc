#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const carry_states = pass_named("carry_states").run;

TEST(CarryStates, KeepsTheStepThatAScanHasComeTo) {
  expect_becomes(carry_states,
                 R"(fn f(X: float32[4096, 1024], S: float32[4096, 1024]) {
                   for b in 0..4 parallel {
                     for o in 0..4 { for i in 0..64 vectorize {
                       S[0, b*256 + o*64 + i] = X[0, b*256 + o*64 + i] } }
                     for t in 0..4095 { for o in 0..4 { for i in 0..64 vectorize {
                       S[t + 1, b*256 + o*64 + i] =
                         S[t, b*256 + o*64 + i]*0.9 + X[t + 1, b*256 + o*64 + i] } } } } })",
                 R"(fn f(X: float32[4096, 1024], S: float32[4096, 1024]) {
                   for b in 0..4 parallel {
                     allocate s: float32[4, 64] scope(local)
                     for o in 0..4 { for i in 0..64 vectorize {
                       s[o, i] = X[0, b*256 + o*64 + i]
                       S[0, b*256 + o*64 + i] = s[o, i] } }
                     for t in 0..1023 { for o in 0..4 { for r in 0..4 unroll {
                       for i in 0..64 vectorize {
                         s[o, i] = s[o, i]*0.9 + X[t*4 + r + 1, b*256 + o*64 + i]
                         S[t*4 + r + 1, b*256 + o*64 + i] = s[o, i] } } } }
                     for t in 0..3 { for o in 0..4 { for i in 0..64 vectorize {
                       s[o, i] = s[o, i]*0.9 + X[4092 + t + 1, b*256 + o*64 + i]
                       S[4092 + t + 1, b*256 + o*64 + i] = s[o, i] } } } } })");
}

TEST(CarryStates, KeepsTheGuardsOfTheLastBlock) {
  expect_becomes(carry_states,
                 R"(fn f(X: float32[4097, 1008], S: float32[4097, 1008]) {
                   for b in 0..8 parallel {
                     for i in 0..128 vectorize { if likely(b*128 + i < 1008) {
                       S[0, b*128 + i] = X[0, b*128 + i] } }
                     for t in 0..4096 { for i in 0..128 vectorize { if likely(b*128 + i < 1008) {
                       S[t + 1, b*128 + i] = S[t, b*128 + i] + X[t + 1, b*128 + i] } } } } })",
                 R"(fn f(X: float32[4097, 1008], S: float32[4097, 1008]) {
                   for b in 0..8 parallel {
                     allocate s: float32[128] scope(local)
                     for i in 0..128 vectorize { if likely(b*128 + i < 1008) {
                       s[i] = X[0, b*128 + i]  S[0, b*128 + i] = s[i] } }
                     for t in 0..1024 { for r in 0..4 unroll { for i in 0..128 vectorize {
                       if likely(b*128 + i < 1008) {
                         s[i] = s[i] + X[t*4 + r + 1, b*128 + i]
                         S[t*4 + r + 1, b*128 + i] = s[i] } } } } } })");
}

TEST(CarryStates, GoesBackwardsToo) {
  expect_becomes(carry_states,
                 R"(fn f(X: float32[4097, 1024], S: float32[4097, 1024]) {
                   for i in 0..1024 vectorize { S[4096, i] = X[4096, i] }
                   for t in 0..4096 { for i in 0..1024 vectorize {
                     S[4095 - t, i] = max(S[4096 - t, i], X[4095 - t, i]) } } })",
                 R"(fn f(X: float32[4097, 1024], S: float32[4097, 1024]) {
                   allocate s: float32[1024] scope(local)
                   for i in 0..1024 vectorize { s[i] = X[4096, i]  S[4096, i] = s[i] }
                   for t in 0..1024 { for r in 0..4 unroll { for i in 0..1024 vectorize {
                     s[i] = max(s[i], X[4095 - (t*4 + r), i])
                     S[4095 - (t*4 + r), i] = s[i] } } } })");
}

/// Half of the columns of a scan: `first` stores its first step, `step` the others.
void expect_left_alone(std::string_view step, std::string_view first = "S[0, i] = X[0, i]",
                       std::string_view rest = "", std::string_view columns = "1024") {
  const std::string c(columns);
  expect_unchanged(carry_states, "fn f(X: float32[4096, " + c + "], S: float32[4096, " + c +
                                     "], Y: float32[4096, " + c +
                                     "]) { for i in 0..512 vectorize { " + std::string(first) +
                                     " } for t in 0..4094 { for i in 0..512 vectorize { " +
                                     std::string(step) + " } } " + std::string(rest) + " }");
}

TEST(CarryStates, LeavesOtherStepsAlone) {
  expect_left_alone("S[t + 2, i] = S[t, i] + X[t, i]");      // two steps back
  expect_left_alone("S[t + 1, i] = S[t, i + 1] + X[t, i]");  // of another column
  expect_left_alone("S[t + 1, i] = S[t, i] + S[t + 1, i]");  // of another step
  expect_left_alone("S[t + 1, i] = X[t + 1, i]");            // none
  expect_left_alone("S[0, i] = S[0, i] + X[t, i]");          // a sum, which stays in one place
  expect_left_alone("S[t + 2, i] = S[t + 1, i] + X[t, i]");  // which the first is not
  expect_left_alone("S[t + 1, floordiv(i, 2)] = S[t, floordiv(i, 2)] + X[t, i]",
                    "S[0, floordiv(i, 2)] = X[0, i]");
  expect_left_alone("S[t + 1, i] = S[t, i] + X[t, i]", "S[0, i + 1] = X[0, i]");
  expect_left_alone("S[t + 1, i] = S[t, i] + X[t, i]", "if i < 9 { S[0, i] = X[0, i] }");
}

TEST(CarryStates, LeavesWhatGainsNothing) {
  // Small enough for the caches.
  expect_left_alone("S[t + 1, i] = S[t, i] + X[t, i]", "S[0, i] = X[0, i]", "", "511");
  // Rows that begin within a line.
  expect_left_alone("S[t + 1, i] = S[t, i] + X[t, i]", "S[0, i] = X[0, i]", "", "1021");
  // Read again, and so better in the caches.
  expect_left_alone("S[t + 1, i] = S[t, i] + X[t, i]", "S[0, i] = X[0, i]",
                    "for i in 0..512 { Y[0, i] = S[0, i] }");
}

}  // namespace
}  // namespace kiln::testing
