#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const validate_vectors = pass_named("validate_vectors").run;

TEST(ValidateVectors, LeavesIndependentIterationsAlone) {
  expect_unchanged(validate_vectors, R"(fn f(A: float32[m, n], B: float32[m, n]) {
      for i in 0..8 vectorize { B[0, i] = A[0, i]
        for t in 0..m - 1 { B[t + 1, i] = B[t, i] + A[t + 1, i] } } })");
}

TEST(ValidateVectors, LeavesAReductionAlone) {
  expect_unchanged(validate_vectors, R"(fn f(A: float32[8], C: float32[1]) {
      for k in 0..8 vectorize { C[0] = C[0] + A[k] } })");
}

TEST(ValidateVectors, LeavesWhatIsTheSameInAllIterationsAlone) {
  expect_unchanged(validate_vectors, R"(fn f(A: float32[8, 4], C: float32[4]) {
      for k in 0..8 vectorize { for j in 0..4 { C[j] = C[j] + A[k, j] } } })");
}

TEST(ValidateVectors, RunsARecurrenceSerially) {
  const ir::Kernel kernel = expect_becomes(
      validate_vectors, "fn f(A: float32[9]) { for i in 0..8 vectorize { A[i + 1] = A[i] + 1.0 } }",
      "fn f(A: float32[9]) { for i in 0..8 { A[i + 1] = A[i] + 1.0 } }");
  EXPECT_EQ(kernel.notes, std::vector<std::string>{"i runs serially, not as vectors: one iteration "
                                                   "may need what another one stores in A"});
}

TEST(ValidateVectors, RunsSeriallyWhatPassesThroughOnePlace) {
  expect_becomes(validate_vectors,
                 R"(fn f(A: float32[8], C: float32[8]) { allocate t: float32[1] scope(local)
                   for i in 0..8 vectorize { t[0] = A[i]  C[i] = t[0] } })",
                 R"(fn f(A: float32[8], C: float32[8]) { allocate t: float32[1] scope(local)
                   for i in 0..8 { t[0] = A[i]  C[i] = t[0] } })");
}

TEST(ValidateVectors, TellsDigitsOfAnIndexApart) {
  // i*4 + j and i*4 + k never meet for different i, however the inner loops run.
  expect_unchanged(validate_vectors, R"(fn f(A: float32[32]) { for i in 0..8 vectorize {
      for j in 0..4 { A[i*4 + j] = 0.0 }  for k in 0..4 { A[i*4 + k] = A[i*4 + k] + 1.0 } } })");
}

TEST(ValidateVectors, RunsSeriallyWhereDigitsOverlap) {
  expect_becomes(validate_vectors, R"(fn f(A: float32[40]) { for i in 0..8 vectorize {
      for j in 0..5 { A[i*4 + j] = 0.0 }  for k in 0..4 { A[i*4 + k] = A[i*4 + k] + 1.0 } } })",
                 R"(fn f(A: float32[40]) { for i in 0..8 {
      for j in 0..5 { A[i*4 + j] = 0.0 }  for k in 0..4 { A[i*4 + k] = A[i*4 + k] + 1.0 } } })");
}

TEST(ValidateVectors, LeavesAFusedIndexTakenApartAlone) {
  expect_unchanged(validate_vectors, R"(fn f(A: float32[n, m]) { for f in 0..16 vectorize {
      if f < n*m { A[floordiv(f, m), floormod(f, m)] = 0.0
        for k in 0..9 {
          A[floordiv(f, m), floormod(f, m)] = A[floordiv(f, m), floormod(f, m)] + 1.0 } } } })");
}

}  // namespace
}  // namespace kiln::testing
