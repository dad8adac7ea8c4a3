#include "tests/passes/pass_test.h"
#include "tests/support/parse_ir.h"

namespace kiln::testing {
namespace {

PassFunction* const simplify = pass_named("simplify").run;

constexpr const char* kParameters = "A: float32[n], B: float32[n], I: int64[n] input";

void expect_simplified(std::string_view before, std::string_view after) {
  expect_same(run_pass(simplify, parse_kernel(kParameters, before)),
              parse_kernel(kParameters, after));
}

TEST(SimplifyPass, RemovesWhatNeverRuns) {
  expect_simplified("for i in 0..n - n { A[0] = 1.0 } A[1] = 1.0", "A[1] = 1.0");
  expect_simplified("for i in 0..n { if i < 0 { A[0] = 1.0 } } A[1] = 1.0", "A[1] = 1.0");
  expect_simplified("for i in 0..n { for j in 0..4 { } } A[1] = 1.0", "A[1] = 1.0");
  expect_simplified("if 0 < n { } else { A[0] = 1.0 }", "if 0 >= n { A[0] = 1.0 }");
}

TEST(SimplifyPass, RemovesConditionsThatAlwaysHold) {
  expect_simplified("for i in 0..n { if i < n { A[i] = 1.0 } }", "for i in 0..n { A[i] = 1.0 }");
  expect_simplified("for i in 0..n { if likely(i < n && i < 4) { A[i] = 1.0 } }",
                    "for i in 0..n { if likely(i < 4) { A[i] = 1.0 } }");
  expect_simplified("for i in 0..n { if i < 4 { if i < 5 { A[i] = 1.0 } else { A[i] = 2.0 } } }",
                    "for i in 0..n { if i < 4 { A[i] = 1.0 } }");
  expect_simplified("for i in 0..n { if i < 4 { A[i] = 1.0 } else { if 3 < i { A[i] = 2.0 } } }",
                    "for i in 0..n { if i < 4 { A[i] = 1.0 } else { A[i] = 2.0 } }");
}

TEST(SimplifyPass, ReplacesALoopOfOneIteration) {
  expect_simplified("for i in 0..n { for j in 0..1 { A[i + j] = B[i*1 + j] } }",
                    "for i in 0..n { A[i] = B[i] }");
}

TEST(SimplifyPass, KeepsTheLoopsOfALaunch) {
  const char* const text = "for threadIdx.x in 0..1 bind { A[threadIdx.x] = 1.0 }";
  expect_simplified(text, "for threadIdx.x in 0..1 bind { A[0] = 1.0 }");
}

TEST(SimplifyPass, RemovesChecksThatNeverFire) {
  const auto kernel = [](std::string_view body) {
    ir::Kernel result = parse_kernel(kParameters, body);
    result.checks.resize(1);
    return result;
  };
  expect_same(
      run_pass(simplify, kernel("for i in 0..n { check i < n #0 check i + 1 < n #0 A[i] = 1.0 }")),
      kernel("for i in 0..n { check i + 1 < n #0 A[i] = 1.0 }"));
}

TEST(SimplifyPass, RemovesMemoryThatNothingUses) {
  expect_simplified("allocate s: float32[4] scope(global) A[0] = 1.0", "A[0] = 1.0");
}

TEST(SimplifyPass, ConcludesNothingFromMemoryThatMayChange) {
  const char* const text =
      "for i in 0..n { if A[i] < 1.0 { A[i] = 2.0 if A[i] < 1.0 { A[i] = 3.0 } } }";
  expect_simplified(text, text);
}

TEST(SimplifyPass, GivesTheSameNodeWhenThereIsNothingToDo) {
  const ir::Kernel kernel =
      parse_kernel(kParameters,
                   "for i.outer in 0..floordiv(n + 31, 32) parallel { for i.inner in 0..32 { "
                   "if likely(i.outer*32 + i.inner < n) { A[i.outer*32 + i.inner] = B[i.outer*32 + "
                   "i.inner] } } }");
  EXPECT_EQ(run_pass(simplify, kernel).body, kernel.body);
}

}  // namespace
}  // namespace kiln::testing
