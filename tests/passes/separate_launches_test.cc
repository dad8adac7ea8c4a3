#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const separate_launches = pass_named("separate_launches").run;

TEST(SeparateLaunches, HasTheHostRunALoopWhoseBlocksNeedEachOther) {
  const ir::Kernel kernel = expect_becomes(separate_launches, R"(fn f(S: float32[m, n]) {
        for t in 0..m - 1 { for b in 0..n bind(blockIdx.x) { S[t + 1, b] = S[t, n - 1 - b] } } })",
                                           R"(fn f(S: float32[m, n]) {
        for t in 0..m - 1 host {
          for b in 0..n bind(blockIdx.x) { S[t + 1, b] = S[t, n - 1 - b] } } })",
                                           kCuda);
  EXPECT_EQ(kernel.notes,
            (std::vector<std::string>{"each step of t is launches of its own: blocks depend on "
                                      "each other through S"}));
}

TEST(SeparateLaunches, LeavesColumnsThatAreIndependentInOneLaunch) {
  expect_unchanged(separate_launches, R"(fn f(S: float32[m, n]) {
    for t in 0..m - 1 { for b in 0..n bind(blockIdx.x) { S[t + 1, b] = S[t, b] } } })",
                   kCuda);
}

TEST(SeparateLaunches, TellsTheSlotsOfARingApart) {
  expect_becomes(separate_launches, R"(fn f(X: float32[n], Y: float32[n]) {
    allocate S: float32[2, n] scope(global)
    for b in 0..n bind(blockIdx.x) { S[0, b] = X[b] }
    for t in 0..5 { for b in 0..n bind(blockIdx.x) {
      S[floormod(t + 1, 2), b] = S[floormod(t, 2), n - 1 - b] } }
    for b in 0..n bind(blockIdx.x) { Y[b] = S[1, b] } })",
                 R"(fn f(X: float32[n], Y: float32[n]) {
    allocate S: float32[2, n] scope(global)
    for b in 0..n bind(blockIdx.x) { S[0, b] = X[b] }
    for t in 0..5 host { for b in 0..n bind(blockIdx.x) {
      S[floormod(t + 1, 2), b] = S[floormod(t, 2), n - 1 - b] } }
    for b in 0..n bind(blockIdx.x) { Y[b] = S[1, b] } })",
                 kCuda);
  // The same slot twice is left to insert_barriers.
  EXPECT_THROW(run_pass(pass_named("insert_barriers").run, R"(fn f(S: float32[3, n]) {
    for t in 0..5 host { for b in 0..n bind(blockIdx.x) {
      S[floormod(t + 3, 3), b] = S[floormod(t, 3), n - 1 - b] } } })",
                        kCuda),
               Error);
}

TEST(SeparateLaunches, MakesAGuardAroundSeveralStatementsOneAroundEach) {
  expect_becomes(separate_launches, R"(fn f(S: float32[m, n], R: float32[m, n]) {
    for t in 0..m - 1 { if t < n {
      for b in 0..n bind(blockIdx.x) { S[t + 1, b] = S[t, b] }
      for b in 0..n bind(blockIdx.x) { R[t, b] = S[t + 1, 0] } } } })",
                 R"(fn f(S: float32[m, n], R: float32[m, n]) {
    for t in 0..m - 1 host {
      if t < n { for b in 0..n bind(blockIdx.x) { S[t + 1, b] = S[t, b] } }
      if t < n { for b in 0..n bind(blockIdx.x) { R[t, b] = S[t + 1, 0] } } } })",
                 kCuda);
}

TEST(SeparateLaunches, LeavesALoopWhoseEndIsReadFromMemory) {
  expect_unchanged(separate_launches, R"(fn f(N: int64[1], S: float32[m, n]) {
    for t in 0..N[0] { for b in 0..n bind(blockIdx.x) { S[t + 1, b] = S[t, n - 1 - b] } } })",
                   kCuda);
}

}  // namespace
}  // namespace kiln::testing
