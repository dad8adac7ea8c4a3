/// Products of few rows whose columns are read once, in the order in which they lie.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

std::string steps_of(std::string_view text, const std::string& arch) {
  const language::Kernel kernel = kernel_of(text).kernel;
  const Target target{.kind = TargetKind::Llvm, .arch = arch};
  return language::print_schedule(kernel, "cpu", choose_schedule(kernel, {}, target, {}));
}

std::string product(int rows, int steps, int columns, const std::string& arch = "znver3") {
  return steps_of(fmt::format("kernel k(A: float32[{0}, {1}], B: float32[{1}, {2}]) -> "
                              "(C: float32[{0}, {2}]) {{\n"
                              "  C[i, j] = sum[k < {1}](A[i, k] * B[k, j])\n"
                              "}}\n",
                              rows, steps, columns),
                  arch);
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

bool is_streamed(const std::string& steps) { return has(steps, "cache_write(C, global)"); }

/// Sums lie as tiles take them; rows of whole pages, which share sets of L1, are copied.
TEST(ChooseStreamed, AddsSomeStepsForAllColumnsOfABlock) {
  EXPECT_EQ(product(8, 4096, 4096),
            "schedule cpu {\n"
            "  split(C.j, factor=1024)\n"
            "  split(C.j.inner, factor=16)\n"
            "  reorder(C.j.outer, C.j.inner.outer, C.i, C.j.inner.inner)\n"
            "  cache_write(C, global)\n"
            "  split(C.global.i.c, factor=4)\n"
            "  split(C.global.k, factor=8)\n"
            "  reorder(C.global.j.outer.c, C.global.k.outer, C.global.j.inner.outer.c, "
            "C.global.i.c.outer, "
            "C.global.k.inner, C.global.i.c.inner, C.global.j.inner.inner.c)\n"
            "  cache_read(A, global, C.global, C.global.k.outer, C.global.i.c.outer, "
            "C.global.i.c.inner, "
            "C.global.k.inner)\n"
            "  parallel(A.global.k.outer)\n"
            "  unroll(C.global.k.inner)\n"
            "  unroll(C.global.i.c.inner)\n"
            "  vectorize(C.global.j.inner.inner.c)\n"
            "  split(C.j, factor=1024)\n"
            "  split(C.j.inner, factor=16)\n"
            "  reorder(C.j.outer, C.i, C.j.inner.outer, C.j.inner.inner)\n"
            "  vectorize(C.j.inner.inner)\n"
            "  compute_at(C.global, C.j.outer)\n"
            "  parallel(C.j.outer)\n"
            "}\n");
}

TEST(ChooseStreamed, IsForColumnsThatAreFarAndNotForManyRows) {
  EXPECT_TRUE(is_streamed(product(2, 512, 2048)));
  EXPECT_TRUE(is_streamed(product(32, 4096, 4096)));
  EXPECT_FALSE(is_streamed(product(8, 256, 256))) << "L2 has them";
  EXPECT_FALSE(is_streamed(product(256, 4096, 4096)));
  // Tiles of more registers read more lines of each step.
  EXPECT_TRUE(is_streamed(product(4, 4096, 4096, "znver4")));
  EXPECT_FALSE(is_streamed(product(4, 1024, 4096, "znver4"))) << "L3 has them";
  // Nor where results are as large as the columns.
  EXPECT_FALSE(is_streamed(product(16, 10, 20000)));
  EXPECT_TRUE(is_streamed(product(2, 10, 20000)));
}

/// What is left over would be code of its own.
TEST(ChooseStreamed, LeavesNoRowsAndStepsOverWhereItCan) {
  const std::string steps = product(7, 333, 5001);
  EXPECT_TRUE(is_streamed(steps));
  EXPECT_TRUE(has(steps, "split(C.global.i.c, factor=7)")) << steps;
  EXPECT_TRUE(has(steps, "split(C.global.k, factor=9)")) << steps;
  // But not three steps, for which sums would come and go too often.
  EXPECT_FALSE(has(product(16, 5889, 141), "split(C.global.k, factor=3)"));
}

/// Each product of the batch would read them anew.
TEST(ChooseStreamed, IsNotForProductsThatHaveTheSameColumns) {
  const auto batch = [](std::string_view column) {
    return steps_of(fmt::format("kernel k(A: float32[100, 8, 512], B: float32[100, 512, 2048]) -> "
                                "(C: float32[100, 8, 2048]) {{\n"
                                "  C[b, i, j] = sum[k < 512](A[b, i, k] * B[{}, k, j])\n"
                                "}}\n",
                                column),
                    "znver3");
  };
  EXPECT_TRUE(is_streamed(batch("b")));
  EXPECT_FALSE(is_streamed(batch("0")));
}

/// Tiles of columns, where one tile has all rows.
TEST(ChooseStreamed, CoresShareColumnsInPlaceOfFewRows) {
  const std::string steps = product(2, 1024, 4096, "znver4");
  EXPECT_FALSE(is_streamed(steps));
  EXPECT_TRUE(has(steps, "parallel(C.j.outer)")) << steps;
}

}  // namespace
}  // namespace kiln::testing
