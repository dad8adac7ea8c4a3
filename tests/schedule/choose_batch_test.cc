/// Automatic schedules of products that lie side by side.

#include <gtest/gtest.h>

#include "compiler/autoschedule/choose_schedule.h"
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

TEST(ChooseBatch, LeavesFewProductsAlone) {
  const std::string chosen = chosen_for(
      "kernel k(A: float32[60, 50, 2], B: float32[40, 50, 2]) -> (C: float32[60, 40, 2]) {\n"
      "  C[i, j, b] = sum[k < 50](A[i, k, b] * B[j, k, b])\n"
      "}\n");
  EXPECT_EQ(chosen.find("split(C.b"), std::string::npos) << chosen;
}

}  // namespace
}  // namespace kiln::testing
