/// Automatic schedules that lay out a factor of a product as its tiles read it.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose_schedule.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

/// The steps that are chosen for C[i, j] = sum(a * b) of these sizes.
std::string chosen_for(int m, int n, int l, std::string_view a, std::string_view b,
                       std::string_view a_shape, std::string_view b_shape) {
  const std::string text = fmt::format(
      "kernel k(A: float32[{}], B: float32[{}]) -> (C: float32[{m}, {n}]) {{\n"
      "  C[i, j] = sum[k < {l}]({} * {})\n"
      "}}\n",
      fmt::format(fmt::runtime(a_shape), fmt::arg("m", m), fmt::arg("l", l)),
      fmt::format(fmt::runtime(b_shape), fmt::arg("n", n), fmt::arg("l", l)), a, b,
      fmt::arg("m", m), fmt::arg("n", n), fmt::arg("l", l));
  const language::TextKernel kernel = kernel_of(text);
  const language::Schedule chosen =
      choose_schedule(kernel.kernel, {}, {.kind = TargetKind::Llvm}, {});
  return language::print_schedule(kernel.kernel, "cpu", chosen);
}

std::string rows_by_columns(int m, int n, int l) {
  return chosen_for(m, n, l, "A[i, k]", "B[k, j]", "{m}, {l}", "{l}, {n}");
}

std::string rows_by_rows(int m, int n, int l) {
  return chosen_for(m, n, l, "A[i, k]", "B[j, k]", "{m}, {l}", "{n}, {l}");
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(ChoosePanels, CopiesALargeFactorIntoPanels) {
  EXPECT_EQ(rows_by_columns(1024, 1024, 1024),
            "schedule cpu {\n"
            "  split(C.i, factor=8)\n"
            "  split(C.j, factor=32)\n"
            "  reorder(C.i.outer, C.j.outer, C.k, C.i.inner, C.j.inner)\n"
            "  cache_read(B, global, C, C.j.outer, C.k, C.j.inner)\n"
            "  vectorize(C.j.inner)\n"
            "  unroll(C.i.inner)\n"
            "  parallel(C.i.outer)\n"
            "  vectorize(B.global.j.inner)\n"
            "  parallel(B.global.j.outer)\n"
            "}\n");
}

TEST(ChoosePanels, ReadsAPanelForBlocksOfManyRows) {
  EXPECT_TRUE(has(rows_by_columns(2048, 2048, 2048), "split(C.i.outer, factor=16)"));
  EXPECT_FALSE(has(rows_by_columns(1024, 1024, 1024), "split(C.i.outer"));
}

TEST(ChoosePanels, TurnsAFactorWhoseColumnsAreApart) {
  const std::string chosen = rows_by_rows(64, 64, 64);
  EXPECT_TRUE(has(chosen, "cache_read(B, global, C, C.j.outer, C.k, C.j.inner)")) << chosen;
  EXPECT_TRUE(has(chosen, "split(B.global.k, factor=16)")) << chosen;
}

TEST(ChoosePanels, LeavesASmallFactorWhereItIs) {
  EXPECT_FALSE(has(rows_by_columns(256, 256, 256), "cache_read"));
}

TEST(ChoosePanels, CopiesNothingForFewRows) {
  EXPECT_FALSE(has(rows_by_columns(8, 4096, 4096), "cache_read"));
  EXPECT_FALSE(has(rows_by_rows(8, 512, 512), "cache_read"));
}

TEST(ChoosePanels, SumsDownColumnsForOneRow) {
  const std::string chosen = rows_by_columns(1, 4096, 4096);
  EXPECT_TRUE(has(chosen, "split(C.j, factor=1024)")) << chosen;
  EXPECT_TRUE(has(chosen, "parallel(C.j.outer)")) << chosen;
  EXPECT_FALSE(has(chosen, "cache_read")) << chosen;
}

/// A copy has one place for each iteration, but the two factors read it at different ones.
TEST(ChoosePanels, LeavesAMatrixTimesItselfAlone) {
  const language::TextKernel kernel = kernel_of(
      "kernel k(A: float32[64, 64]) -> (C: float32[64, 64]) {\n"
      "  C[i, j] = sum[k < 64](A[i, k] * A[j, k])\n"
      "}\n");
  const language::Schedule chosen =
      choose_schedule(kernel.kernel, {}, {.kind = TargetKind::Llvm}, {});
  EXPECT_FALSE(has(language::print_schedule(kernel.kernel, "cpu", chosen), "cache_read"));
}

}  // namespace
}  // namespace kiln::testing
