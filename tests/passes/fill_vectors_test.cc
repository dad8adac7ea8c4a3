#include <fmt/format.h>

#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const fill_vectors = pass_named("fill_vectors").run;

/// Sums of tiles of `columns` in memory of their own, of panels that are copied: {0} columns in
/// all, {1} the copy, {2} and {3} around each store to the sums, {4} what a step of them
/// multiplies.
constexpr const char* kSums =
    R"(fn f(A: float32[100, 4], B: float32[100, {0}], C: float32[{0}, 4]) {{
  allocate P: float32[3, 100, 16] scope(global)
  for o in 0..3 {{ for k in 0..100 {{ for c in 0..16 vectorize {{ {1} }} }} }}
  for o in 0..3 {{
    allocate S: float32[4, 16] scope(global)
    for j in 0..4 unroll {{ for c in 0..16 vectorize {{ {2} S[j, c] = 0.0 {3} }} }}
    for k in 0..100 {{ for j in 0..4 unroll {{ for c in 0..16 vectorize {{
      {2} S[j, c] = S[j, c] + A[k, j]*{4} {3} }} }} }}
    for c in 0..16 {{ if likely(o*16 + c < {0}) {{
      for j in 0..4 vectorize {{ C[o*16 + c, j] = S[j, c] }} }} }}
  }}
}})";

std::string guarded_copy(int columns) {
  return fmt::format("if likely(o*16 + c < {}) {{ P[o, k, c] = B[k, o*16 + c] }}", columns);
}

std::string sums(int columns, std::string_view copy, bool are_guarded,
                 std::string_view factor = "P[o, k, c]") {
  const std::string guard = fmt::format("if likely(o*16 + c < {}) {{", columns);
  return fmt::format(kSums, columns, copy, are_guarded ? guard : "", are_guarded ? "}" : "",
                     factor);
}

/// 46 columns: 14 of the last 16, which with AVX2 are as many registers.
TEST(FillVectors, OfSumsThatNobodyReadsAndOfTheCopyThatTheyAreOf) {
  for (const char* arch : {"znver3", "znver4"})
    expect_becomes(fill_vectors, sums(46, guarded_copy(46), true),
                   sums(46, "P[o, k, c] = if_then_else(o*16 + c < 46, B[k, o*16 + c], 0.0)", false),
                   {.arch = arch});
}

TEST(FillVectors, KeepsFewerRegistersToThemselves) {
  const std::string few = sums(40, guarded_copy(40), true);
  expect_unchanged(fill_vectors, few, {.arch = "znver3"});
  expect_becomes(fill_vectors, few,
                 sums(40, "P[o, k, c] = if_then_else(o*16 + c < 40, B[k, o*16 + c], 0.0)", false),
                 {.arch = "znver4"});
}

TEST(FillVectors, ReadsNothingThatIsNotThere) {
  expect_unchanged(fill_vectors, sums(46, guarded_copy(46), true, "B[k, o*16 + c]"));
  // Another guard of the copy says what else is there.
  expect_unchanged(fill_vectors, sums(46, "if likely(k < 99) { " + guarded_copy(46) + " }", true));
}

/// A division by what stands there could stop the kernel.
TEST(FillVectors, ComputesOnlyWhatAllNumbersHave) {
  expect_unchanged(fill_vectors, R"(fn f(A: int32[100], C: int32[46]) {
    for o in 0..3 {
      allocate S: int32[4, 16] scope(global)
      for k in 0..100 { for j in 0..4 unroll { for c in 0..16 vectorize {
        if likely(o*16 + c < 46) { S[j, c] = S[j, c] + floordiv(A[k], S[j, c]) } } } }
      for c in 0..16 { if likely(o*16 + c < 46) { C[o*16 + c] = S[0, c] } }
    } })");
}

TEST(FillVectors, LeavesAloneWhatIsNotWrittenOut) {
  expect_unchanged(fill_vectors, R"(fn f(A: float32[100], C: float32[46]) {
    for o in 0..3 {
      allocate S: float32[16] scope(global)
      for k in 0..100 { for c in 0..16 vectorize {
        if likely(o*16 + c < 46) { S[c] = S[c] + A[k] } } }
      for c in 0..16 { if likely(o*16 + c < 46) { C[o*16 + c] = S[c] } }
    } })");
}

}  // namespace
}  // namespace kiln::testing
