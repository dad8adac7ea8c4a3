// Where loops look whether their call was cancelled.
#include "compiler/codegen/pace.h"

#include <gtest/gtest.h>

#include "compiler/ir/parse.h"

namespace kiln::codegen {
namespace {

Looks looks_of_first(std::string_view loops) {
  const ir::Kernel kernel = ir::parse(loops);
  return looks_of(*ir::as<ir::For>(kernel.body));
}

TEST(Looks, AreNoneWhereALoopIsSoonDone) {
  EXPECT_EQ(looks_of_first("fn f(A: float32[64]) { for i in 0..64 { A[i] = A[i] + 1.0 } }").pace,
            Pace::Never);
  EXPECT_EQ(looks_of_first("fn f(A: float32[64, 999]) { for i in 0..64 { for j in 0..999 { "
                           "A[i, j] = A[i, j] + 1.0 } } }")
                .pace,
            Pace::Never);
}

TEST(Looks, AreBetweenBlocksOfALongLoopAroundLittle) {
  for (const char* loops :
       {"fn f(A: float32[n]) { for i in 0..n { A[i] = A[i] + 1.0 } }",
        "fn f(A: float32[999999999]) { for i in 0..999999999 { A[i] = A[i] + 1.0 } }",
        "fn f(A: float32[n, 4]) { for i in 0..n { for j in 0..4 { A[i, j] = A[i, j] + 1.0 } } }"}) {
    const Looks looks = looks_of_first(loops);
    EXPECT_EQ(looks.pace, Pace::Blocks) << loops;
    EXPECT_GT(looks.iterations, 100'000) << loops;
    EXPECT_LT(looks.iterations, 2'000'000) << loops;
  }
}

TEST(Looks, ComeSoonerTheMoreAnIterationComputes) {
  const int64_t one =
      looks_of_first("fn f(A: float32[n]) { for i in 0..n { A[i] = A[i] + 1.0 } }").iterations;
  const int64_t of_vectors = looks_of_first(
                                 "fn f(A: float32[n]) { for i in 0..n { A[ramp(i*16, 1, 16)] = "
                                 "A[ramp(i*16, 1, 16)] + broadcast(1.0, 16) } }")
                                 .iterations;
  const int64_t of_exp =
      looks_of_first("fn f(A: float32[n]) { for i in 0..n { A[i] = exp(A[i]) } }").iterations;
  EXPECT_LT(of_vectors, one / 8);
  EXPECT_LT(of_exp, one / 8);
  EXPECT_GT(of_vectors, 1000);
}

TEST(Looks, AreBeforeEachIterationThatMayTakeLong) {
  for (
      const char* loops :
      {"fn f(A: float32[64, n]) { for i in 0..64 { for j in 0..n { A[i, j] = 0.0 } } }",
       "fn f(A: float32[2, 99999999]) { for i in 0..2 { for j in 0..99999999 { A[i, j] = 0.0 } } }",
       "fn f(A: float32[2, n]) { for i in 0..2 { if i < 1 { for j in 0..n { A[i, j] = 0.0 } } } }"})
    EXPECT_EQ(looks_of_first(loops).pace, Pace::Each) << loops;
}

}  // namespace
}  // namespace kiln::codegen
