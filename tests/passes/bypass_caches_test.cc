#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const bypass_caches = pass_named("bypass_caches").run;

TEST(BypassCaches, NamesLargeOutputsThatNothingReads) {
  expect_becomes(bypass_caches,
                 R"(fn f(A: float32[4194304], C: float32[4194304]) { for i in 0..131072 {
                   C[ramp(i*32, 1, 32)] = A[ramp(i*32, 1, 32)] } })",
                 R"(fn f(A: float32[4194304], C: float32[4194304]) { nontemporal C
                   for i in 0..131072 { C[ramp(i*32, 1, 32)] = A[ramp(i*32, 1, 32)] } })");
}

TEST(BypassCaches, NamesOutputsOfASizeThatIsNotKnown) {
  expect_becomes(bypass_caches,
                 R"(fn f(C: float32[n]) { for i in 0..floordiv(n, 32) {
                   C[ramp(i*32, 1, 32)] = broadcast(1.0, 32) } })",
                 R"(fn f(C: float32[n]) { nontemporal C for i in 0..floordiv(n, 32) {
                   C[ramp(i*32, 1, 32)] = broadcast(1.0, 32) } })");
}

TEST(BypassCaches, LeavesSmallOutputsInTheCaches) {
  EXPECT_TRUE(
      run_pass(bypass_caches, "fn f(C: float32[1024]) { C[ramp(0, 1, 32)] = broadcast(1.0, 32) }")
          .nontemporal.empty());
}

TEST(BypassCaches, LeavesRowsThatShareLinesInTheCaches) {
  const auto names_rows_of = [](std::string_view length) {
    return !run_pass(bypass_caches,
                     fmt::format("fn f(C: float32[16384, {0}]) {{ for i in 0..16384 {{ "
                                 "C[ramp(i*{0}, 1, 32)] = broadcast(1.0, 32) }} }}",
                                 length))
                .nontemporal.empty();
  };
  EXPECT_TRUE(names_rows_of("1032"));
  EXPECT_FALSE(names_rows_of("1033"));
  EXPECT_TRUE(names_rows_of("n"));
}

/// With what is read for it, and of what little is read for only past any cache.
TEST(BypassCaches, LeavesWhatStaysInTheCaches) {
  const auto names = [](int read, int stored) {
    return !run_pass(bypass_caches, fmt::format("fn f(A: float32[{0}], C: float32[{1}]) {{ "
                                                "C[ramp(0, 1, 32)] = A[ramp(0, 1, 32)] }}",
                                                read << 18, stored << 18))
                .nontemporal.empty();
  };
  EXPECT_FALSE(names(8, 8));
  EXPECT_TRUE(names(10, 10));
  EXPECT_TRUE(names(12, 8));
  EXPECT_FALSE(names(20, 7));
  EXPECT_FALSE(names(4, 24));
  EXPECT_TRUE(names(12, 24));
  EXPECT_TRUE(names(0, 64));
}

TEST(BypassCaches, LeavesOutputsThatAreReadInTheCaches) {
  EXPECT_TRUE(run_pass(bypass_caches, R"(fn f(C: float32[n]) { for i in 0..n {
                     C[ramp(i*32, 1, 32)] = C[ramp(i*32 - 32, 1, 32)] } })")
                  .nontemporal.empty());
}

TEST(BypassCaches, LeavesSingleElementsAlone) {
  EXPECT_TRUE(run_pass(bypass_caches, "fn f(C: float32[n]) { for i in 0..n { C[i] = 1.0 } }")
                  .nontemporal.empty());
}

}  // namespace
}  // namespace kiln::testing
