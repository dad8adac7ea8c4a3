#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const step_in_vectors = pass_named("step_in_vectors").run;

/// Running sums, of which the first is stored in front.
std::string sums(std::string_view steps, std::string_view value,
                 std::string_view parameters = "X: float32[8, 64], S: float32[8, 64]") {
  return fmt::format(
      "fn f({}) {{ for i in 0..8 bind(threadIdx.x) {{\n"
      "  S[i, 0] = X[i, 0]\n"
      "  for t in 0..{} {{ S[i, t + 1] = {} }} }} }}",
      parameters, steps, value);
}

TEST(StepInVectors, LoadsAndStoresSeveralStepsAtOnce) {
  expect_becomes(step_in_vectors, sums("40", "S[i, t] + X[i, t + 1]*float32(t)"),
                 R"(fn f(X: float32[8, 64], S: float32[8, 64]) { for i in 0..8 bind(threadIdx.x) {
    S[i, 0] = X[i, 0]
    allocate S.last: float32[1] scope(local)
    S.last[0] = S[i, 0]
    for u in 0..3 unroll {
      S.last[0] = S.last[0] + X[i, u + 1]*float32(u)
      S[i, u + 1] = S.last[0] }
    for g in 0..2 {
      allocate X.steps: float32[16] scope(local)
      allocate S.steps: float32[16] scope(local)
      for n in 0..4 unroll { for l in 0..4 vectorize {
        X.steps[n*4 + l] = X[i, g*16 + 4 + (n*4 + l)] } }
      for v in 0..16 unroll {
        S.last[0] = S.last[0] + X.steps[v]*float32(g*16 + 3 + v)
        S.steps[v] = S.last[0] }
      for n in 0..4 unroll { for l in 0..4 vectorize {
        S[i, g*16 + 4 + (n*4 + l)] = S.steps[n*4 + l] } } }
    for w in 0..5 unroll {
      S.last[0] = S.last[0] + X[i, 35 + w + 1]*float32(35 + w)
      S[i, 35 + w + 1] = S.last[0] } } })",
                 kCuda);
}

TEST(StepInVectors, AThreadWithoutARowDoesNothing) {
  const std::string text = R"(fn f(X: float32[8, 64], S: float32[8, 64]) {
    for i in 0..16 bind(threadIdx.x) {
      for t in 0..40 { if likely(i < 8) { S[i, t + 1] = S[i, t] + X[i, t + 1] } } } })";
  const std::string made = ir::print(run_pass(step_in_vectors, text, kCuda));
  EXPECT_NE(made.find("if likely(i < 8) {\n      allocate S.last"), std::string::npos) << made;
  expect_unchanged(step_in_vectors,
                   R"(fn f(X: float32[8, 64], S: float32[8, 64]) {
                     for i in 0..8 bind(threadIdx.x) {
                       for t in 0..40 { if t < i + 9 { S[i, t + 1] = S[i, t] + X[i, t + 1] } } } })",
                   kCuda);
}

TEST(StepInVectors, LeavesWhatIsNoRecurrenceAlongARow) {
  for (const char* value : {
           "X[i, t + 1] + 1.0",        // reads no step before
           "S[i, t] + S[0, t]",        // another row
           "S[i, t] + 1.0",            // nothing to load
           "S[i, t] + X[t, i]",        // goes down a column
           "S[i, t] + X[i, t]",        // of another alignment
           "S[i, t] + X[i, t*2 + 1]",  // every other element
           "if_then_else(t < 5, S[i, t] + X[i, t + 1], 0.0)",
       }) {
    SCOPED_TRACE(value);
    expect_unchanged(step_in_vectors, sums("40", value), kCuda);
  }
  const std::string plain = sums("40", "S[i, t] + X[i, t + 1]");
  expect_unchanged(step_in_vectors, sums("19", "S[i, t] + X[i, t + 1]"), kCuda);  // few steps
  expect_unchanged(step_in_vectors,
                   sums("n - 1", "S[i, t] + X[i, t + 1]", "X: float32[8, n], S: float32[8, n]"),
                   kCuda);
  expect_unchanged(step_in_vectors, plain, {TargetKind::Cuda, Layout::Strided, {}, ""});
  expect_unchanged(step_in_vectors,
                   R"(fn f(X: float32[64], S: float32[64]) { S[0] = X[0]
                     for t in 0..40 { S[t + 1] = S[t] + X[t + 1] } })",
                   kCuda);  // no thread
  expect_unchanged(step_in_vectors,
                   R"(fn f(X: float32[64, 8], S: float32[64, 8]) {
                     for i in 0..8 bind(threadIdx.x) {
                       for t in 0..40 { S[t + 1, i] = S[t, i] + X[t + 1, i] } } })",
                   kCuda);  // down columns
}

/// Half as many doubles are 16 bytes; 16-bit elements are left.
TEST(StepInVectors, IsByTheBytesOfAnElement) {
  const std::string wide = ir::print(
      run_pass(step_in_vectors,
               sums("40", "S[i, t] + X[i, t + 1]", "X: float64[8, 64], S: float64[8, 64]"), kCuda));
  EXPECT_NE(wide.find("float64[8] scope(local)"), std::string::npos) << wide;
  expect_unchanged(step_in_vectors,
                   sums("40", "S[i, t] + X[i, t + 1]", "X: float16[8, 64], S: float16[8, 64]"),
                   kCuda);
}

}  // namespace
}  // namespace kiln::testing
