#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const tabulate_invariants = pass_named("tabulate_invariants").run;

/// Rows of {0} columns, of which each element is {1}.
std::string rows(int columns, std::string_view value, std::string_view count = "m") {
  return fmt::format(
      "fn f(X: float32[{2}, {0}], V: float32[{0}], Y: float32[{2}, {0}] output) {{ "
      "for i in 0..{2} {{ for j in 0..{0} vectorize {{ Y[i, j] = {1} }} }} }}",
      columns, value, count);
}

TEST(TabulateInvariants, ComputesOnceWhatRowsShare) {
  expect_becomes(tabulate_invariants, rows(100, "X[i, j] / sqrt(V[j] + 1.0)"),
                 R"(fn f(X: float32[m, 100], V: float32[100], Y: float32[m, 100] output) {
      allocate Y.once: float32[100]
      for j in 0..100 vectorize { Y.once[j] = sqrt(V[j] + 1.0) }
      for i in 0..m { for j in 0..100 vectorize { Y[i, j] = X[i, j] / Y.once[j] } }
    })");
}

TEST(TabulateInvariants, BeforeTheOutermostLoopThatDoesNotChangeThem) {
  expect_becomes(tabulate_invariants,
                 R"(fn f(V: float32[3, 8], Y: float32[3, 50, 60, 8] output) {
      for b in 0..3 parallel { for i in 0..50 { for k in 0..60 { for j in 0..8 vectorize {
        Y[b, i, k, j] = exp(V[b, j]) } } } } })",
                 R"(fn f(V: float32[3, 8], Y: float32[3, 50, 60, 8] output) {
      for b in 0..3 parallel {
        allocate Y.once: float32[8]
        for j in 0..8 vectorize { Y.once[j] = exp(V[b, j]) }
        for i in 0..50 { for k in 0..60 { for j in 0..8 vectorize {
          Y[b, i, k, j] = Y.once[j] } } } } })");
}

TEST(TabulateInvariants, StoresThatComputeTheSameHaveOneTable) {
  expect_becomes(tabulate_invariants,
                 R"(fn f(V: float32[8], Y: float32[m, 8] output, Z: float32[m, 8] output) {
      for i in 0..m { for j in 0..8 {
        if likely(j < 5) { Y[i, j] = log(V[j])  Z[i, j] = log(V[j]) + V[j] } } } })",
                 R"(fn f(V: float32[8], Y: float32[m, 8] output, Z: float32[m, 8] output) {
      allocate Y.once: float32[8]
      for j in 0..8 { if likely(j < 5) { Y.once[j] = log(V[j]) } }
      for i in 0..m { for j in 0..8 {
        if likely(j < 5) { Y[i, j] = Y.once[j]  Z[i, j] = Y.once[j] + V[j] } } } })");
}

TEST(TabulateInvariants, LeavesWhatRowsChange) {
  const auto unchanged = [](const std::string& text) {
    expect_unchanged(tabulate_invariants, text);
  };
  unchanged(rows(100, "sqrt(X[i, j])"));
  unchanged(rows(100, "X[i, j] * V[j]"));
  unchanged(rows(100, "X[i, j] / V[0]"));
  // Of a choice only one side is computed.
  unchanged(rows(100, "if_then_else(X[i, j] < 0.0, sqrt(V[j]), 0.0)"));
  // A table that L1 has no room for, and rows too few.
  unchanged(rows(5000, "X[i, j] / sqrt(V[j])"));
  unchanged(rows(100, "X[i, j] / sqrt(V[j])", "3"));
  // V is another one in each row.
  unchanged(
      "fn f(V: float32[8] output, Y: float32[m, 8] output) { for i in 0..m { for j in 0..8 { "
      "V[j] = float32(i)  Y[i, j] = sqrt(V[j]) } } }");
  // Where the guard depends on the row.
  unchanged(
      "fn f(V: float32[8], Y: float32[m, 8] output) { for i in 0..m { for j in 0..8 { "
      "if i < j { Y[i, j] = sqrt(V[j]) } } } }");
}

}  // namespace
}  // namespace kiln::testing
