/// Automatic schedules of products that lie side by side.

#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

std::string chosen_for(const std::string& text) {
  const language::TextKernel kernel = kernel_of(text);
  return language::print_schedule(
      kernel.kernel, "cpu", choose_schedule(kernel.kernel, {}, {.kind = TargetKind::Llvm}, {}));
}

TEST(ChooseBatch, TakesVectorsAlongProductsThatLieSideBySide) {
  EXPECT_EQ(chosen_for("kernel k(A: float32[60, 50, 7], B: float32[40, 50, 7]) -> "
                       "(C: float32[60, 40, 7]) {\n"
                       "  C[i, j, b] = sum[k < 50](A[i, k, b] * B[j, k, b])\n"
                       "}\n"),
            "schedule cpu {\n"
            "  split(C.i, factor=4)\n"
            "  split(C.j, factor=6)\n"
            "  split(C.b, factor=7)\n"
            "  reorder(C.i.outer, C.b.outer, C.j.outer, C.k, C.i.inner, C.j.inner, C.b.inner)\n"
            "  vectorize(C.b.inner)\n"
            "  unroll(C.i.inner)\n"
            "  unroll(C.j.inner)\n"
            "  parallel(C.i.outer)\n"
            "}\n");
}

/// What does not lie along the products is copied in the order in which it lies.
TEST(ChooseBatch, CopiesAFactorWhoseProductsAreApart) {
  EXPECT_EQ(chosen_for("kernel k(A: float32[50, 60, 32], B: float32[50, 32, 40]) -> "
                       "(C: float32[40, 60, 32]) {\n"
                       "  C[j, i, b] = sum[k < 50](A[k, i, b] * B[k, b, j])\n"
                       "}\n"),
            "schedule cpu {\n"
            "  split(C.i, factor=4)\n"
            "  split(C.j, factor=6)\n"
            "  split(C.b, factor=16)\n"
            "  reorder(C.i.outer, C.b.outer, C.j.outer, C.k, C.i.inner, C.j.inner, C.b.inner)\n"
            "  cache_read(B, global, C, C.b.outer, C.j.outer, C.k, C.j.inner, C.b.inner)\n"
            "  reorder(B.global.k, B.global.b.outer, B.global.j.outer, B.global.j.inner, "
            "B.global.b.inner)\n"
            "  vectorize(B.global.b.inner)\n"
            "  parallel(B.global.k)\n"
            "  vectorize(C.b.inner)\n"
            "  unroll(C.i.inner)\n"
            "  unroll(C.j.inner)\n"
            "  parallel(C.i.outer)\n"
            "}\n");
}

/// Factors of a vector of products would not stay near: each product is computed by itself, and the
/// result is transposed where it is read.
TEST(ChooseBatch, ComputesLargeProductsOneAfterTheOther) {
  EXPECT_EQ(chosen_for("kernel k(A: float32[32, 144, 176], B: float32[32, 144, 135]) -> "
                       "(C: float32[176, 135, 32]) {\n"
                       "  P: float32[176, 135, 32]\n"
                       "  P[i, j, b] = sum[k < 144](A[b, k, i] * B[b, k, j])\n"
                       "  C[i, j, b] = max(P[i, j, b], 0.0)\n"
                       "}\n"),
            "schedule cpu {\n"
            "  reorder(P.b, P.i, P.j)\n"
            "  cache_write(P, global)\n"
            "  compute_inline(P)\n"
            "  split(C.b, factor=32)\n"
            "  vectorize(C.b.inner)\n"
            "  parallel(C.i)\n"
            "  split(P.global.i.c, factor=9)\n"
            "  split(P.global.j.c, factor=48)\n"
            "  split(P.global.j.c.outer, factor=3)\n"
            "  reorder(P.global.b.c, P.global.j.c.outer.outer, P.global.i.c.outer, "
            "P.global.j.c.outer.inner, P.global.k, P.global.i.c.inner, P.global.j.c.inner)\n"
            "  cache_read(B, global, P.global, P.global.b.c, P.global.j.c.outer.outer, "
            "P.global.j.c.outer.inner, P.global.k, P.global.j.c.inner)\n"
            "  vectorize(P.global.j.c.inner)\n"
            "  unroll(P.global.i.c.inner)\n"
            "  parallel(P.global.b.c)\n"
            "  parallel(P.global.j.c.outer.outer)\n"
            "  reorder(B.global.k, B.global.j.c.outer.inner)\n"
            "  vectorize(B.global.j.c.inner)\n"
            "  compute_at(B.global, P.global.j.c.outer.outer)\n"
            "}\n");
}

/// A line of A has an element of each product: it is read once for all of them.
TEST(ChooseBatch, CopiesFactorsOfWhichNeighboursBelongToOtherProducts) {
  const std::string chosen = chosen_for(
      "kernel k(A: float32[427, 96, 18], B: float32[115, 427, 18]) -> (C: float32[96, 115, 18]) {\n"
      "  C[i, j, b] = sum[k < 427](A[k, i, b] * B[j, k, b])\n"
      "}\n");
  EXPECT_NE(
      chosen.find("reorder(A.global.i.c.outer, A.global.k, A.global.b.c, A.global.i.c.inner)"),
      std::string::npos)
      << chosen;
  EXPECT_NE(
      chosen.find("reorder(B.global.j.c.outer, B.global.k, B.global.b.c, B.global.j.c.inner)"),
      std::string::npos)
      << chosen;
}

/// Of rows and columns, those are the columns that lie together.
TEST(ChooseBatch, TakesColumnsThatLieTogether) {
  const std::string chosen = chosen_for(
      "kernel k(A: float32[9, 300, 90], B: float32[9, 80, 300]) -> (C: float32[90, 80, 9]) {\n"
      "  C[i, j, b] = sum[k < 300](A[b, k, i] * B[b, j, k])\n"
      "}\n");
  EXPECT_NE(chosen.find("reorder(C.b, C.j, C.i)"), std::string::npos) << chosen;
}

TEST(ChooseBatch, LeavesFewProductsAlone) {
  const std::string chosen = chosen_for(
      "kernel k(A: float32[60, 50, 2], B: float32[40, 50, 2]) -> (C: float32[60, 40, 2]) {\n"
      "  C[i, j, b] = sum[k < 50](A[i, k, b] * B[j, k, b])\n"
      "}\n");
  EXPECT_EQ(chosen.find("split(C.b"), std::string::npos) << chosen;
}

}  // namespace
}  // namespace kiln::testing
