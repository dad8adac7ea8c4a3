#include "compiler/language/state/axis_table.h"

#include <gtest/gtest.h>

#include "tests/support/kernels.h"

namespace kiln::language {
namespace {

using Names = std::vector<std::string>;

TEST(AxisNames, ComeFromTheStepTable) {
  EXPECT_EQ(defined_axis_names(StepKind::Split, Names{"i"}), (Names{"i.outer", "i.inner"}));
  EXPECT_EQ(defined_axis_names(StepKind::Fuse, Names{"i", "j", "k"}), Names{"i.j.k.fused"});
  EXPECT_EQ(defined_axis_names(StepKind::Tile, Names{"x", "y"}),
            (Names{"x.outer", "y.outer", "x.inner", "y.inner"}));
  EXPECT_EQ(defined_axis_names(StepKind::Reorder, Names{"x", "y"}), Names{});
}

TEST(AxisTable, HoldsWhatStepsDefineInOrder) {
  const TextKernel text = testing::kernel_of(
      "kernel k(A: float32[n, l]) -> (C: float32[n]) {\n"
      "  C[i] = sum[k < l](A[i, k])\n"
      "  schedule cpu {\n"
      "    split(C.k, factor=4)\n"
      "    fuse(C.i, C.k.outer)\n"
      "  }\n"
      "}\n");
  const AxisTable table =
      axis_table(text.kernel.definition, text.kernel.names, text.schedules[0].second);
  ASSERT_EQ(table.rows.size(), 5U);
  const auto expect_row = [&](size_t id, const char* name, AxisKind kind, int by, int consumed) {
    EXPECT_EQ(table.rows[id].name, name);
    EXPECT_EQ(table.rows[id].kind, kind) << name;
    EXPECT_EQ(table.rows[id].defined_by, by) << name;
    EXPECT_EQ(table.rows[id].consumed_by, consumed) << name;
    EXPECT_EQ(text.kernel.names.stages[table.rows[id].stage], "C") << name;
  };
  expect_row(0, "i", AxisKind::Data, -1, 1);
  expect_row(1, "k", AxisKind::Reduce, -1, 0);
  expect_row(2, "k.outer", AxisKind::Reduce, 0, 1);
  expect_row(3, "k.inner", AxisKind::Reduce, 0, -1);
  expect_row(4, "i.k.outer.fused", AxisKind::Reduce, 1, -1);
}

TEST(AxisTable, GivesATileEachItsOwnKind) {
  const TextKernel text = testing::kernel_of(
      "kernel k(A: float32[n, l]) -> (C: float32[n]) {\n"
      "  C[i] = sum[k < l](A[i, k])\n"
      "  schedule cpu { tile(C.i, C.k, 8, 4) }\n"
      "}\n");
  const AxisTable table =
      axis_table(text.kernel.definition, text.kernel.names, text.schedules[0].second);
  EXPECT_EQ(table.rows[2].name, "i.outer");
  EXPECT_EQ(table.rows[2].kind, AxisKind::Data);
  EXPECT_EQ(table.rows[3].name, "k.outer");
  EXPECT_EQ(table.rows[3].kind, AxisKind::Reduce);
}

TEST(AxisTable, NamesTheStagesOfStepsAndTheirAxes) {
  const TextKernel text = testing::kernel_of(
      "kernel k(A: float32[n, l]) -> (C: float32[n]) {\n"
      "  C[i] = sum[k < l](A[i, k])\n"
      "  schedule cpu {\n"
      "    cache_read(A, shared, C)\n"
      "    split(C.i, factor=4)\n"
      "    cache_write(C, local)\n"
      "    split(C.local.k, factor=8)\n"
      "    rfactor(C.local.k.inner, factor_axis=1)\n"
      "    cache_read(A, shared, C.local.rf)\n"
      "  }\n"
      "}\n");
  const AxisTable table =
      axis_table(text.kernel.definition, text.kernel.names, text.schedules[0].second);
  Names shown;
  for (const AxisTable::Stage& stage : table.stages) {
    std::string line = stage.name + ":";
    for (const AxisId axis : stage.leaves)
      line += " " + std::to_string(axis) + "=" + table.rows[axis].name;
    shown.push_back(line);
  }
  EXPECT_EQ(shown, (Names{"A:", "C: 0=i", "A.shared: 2=ax0 3=ax1",
                          "C.local: 6=i.outer.c 7=i.inner.c 15=k.inner.v",
                          "C.local.rf: 11=i.outer.c 12=k.inner 13=i.inner.c 14=k.outer",
                          "A.shared_1: 16=ax0 17=ax1"}));
  Names steps;
  for (const Step& step : text.schedules[0].second.steps)
    steps.push_back(kernel_file_text(step, table));
  EXPECT_EQ(steps,
            (Names{"cache_read(A, shared, C)", "split(C.i, factor=4)", "cache_write(C, local)",
                   "split(C.local.k, factor=8)", "rfactor(C.local.k.inner, factor_axis=1)",
                   "cache_read(A, shared, C.local.rf)"}));
}

TEST(AxisTable, NamesTheStagesOfReductions) {
  const TextKernel text = testing::kernel_of(
      "kernel k(A: float32[n, l], B: float32[l, m], x: float32[n, m], s0: float32[1, m])"
      " -> (C: float32[n, m], s: float32[n, m]) {\n"
      "  C[i, j] = sum[k < l](A[i, k] * B[k, j]) / max[k < l](A[i, k])\n"
      "  scan t {\n"
      "    s[0, j] = s0[0, j]\n"
      "    s[t, j] = max(sum[k < m](s[t - 1, k]), sum[q < m](x[t, q]))\n"
      "  }\n"
      "  schedule cpu {\n"
      "    reduction_stage(C.i, C.k_1, max)\n"
      "    split(C.max.k_1, factor=4)\n"
      "    reduction_stage(C.i, C.j, C.k, sum)\n"
      "    reduction_stage(s.update.t, s.update.k, sum)\n"
      "    reduction_stage(s.update.t, s.update.q, sum)\n"
      "  }\n"
      "}\n");
  const AxisTable table =
      axis_table(text.kernel.definition, text.kernel.names, text.schedules[0].second);
  Names shown;
  for (const AxisTable::Stage& stage : table.stages) {
    if (stage.name != "C" && stage.defined_by < 0) continue;
    std::string line = stage.name + ":";
    for (const AxisId axis : stage.leaves)
      line += " " + table.rows[axis].name;
    shown.push_back(line + (stage.cell_of >= 0 ? " at each step" : ""));
  }
  EXPECT_EQ(shown, (Names{"C: i j", "C.max: i k.outer k.inner", "C.sum: i j k",
                          "s.update.sum: t k at each step", "s.update.sum_1: t q"}));
}

TEST(AxisTable, WritesStepsThatChangeNoLoops) {
  const Names steps = {"split(C.i, factor=4)",
                       "compute_at(B, C.i.outer)",
                       "storage_align(B.i, factor=16, offset=4)",
                       "double_buffer(B)",
                       "pragma(C.i.inner, auto_unroll_max_step, value=16)",
                       "pragma(C.i.outer, parallel_launch_point)",
                       "prefetch(A, B.i, offset=1)",
                       "software_pipeline(C.i.outer, stages=3)",
                       "tensorize(C.j, x86.fma.f32)",
                       "env_threads(S, threadIdx.x, threadIdx.y)"};
  std::string text =
      "kernel k(A: float32[n, l]) -> (C: float32[n, l], S: float32[n, l]) {\n"
      "  B: float32[n, l]\n"
      "  B[i, j] = A[i, j] + 1\n"
      "  C[i, j] = B[i, j] + 1\n"
      "  scan t { S[0, i] = A[0, i]  S[t, i] = S[t - 1, i] + A[t, i] }\n"
      "  schedule cpu {\n";
  for (const std::string& step : steps)
    text += "    " + step + "\n";
  const TextKernel kernel = testing::kernel_of(text + "  }\n}\n");
  EXPECT_EQ(
      kernel_file_text(kernel.schedules[0].second, kernel.kernel.definition, kernel.kernel.names),
      steps);
}

TEST(AxisTable, FindsOwnersInsideExpressionsToo) {
  const TextKernel text = testing::kernel_of(
      "kernel k(A: float32[n]) -> (C: float32[n]) { C[i] = A[i] / sum[k < n](A[k]) }");
  EXPECT_EQ(owners_of_axes(text.kernel.definition), (std::vector<int>{1, 1}));
}

TEST(AxisTable, FindsTheCellOfAScan) {
  const TextKernel text = testing::test_kernel("two_stage_scan");
  std::map<std::string, int> cells;
  const std::vector<int> found = cells_of(text.kernel.definition);
  for (size_t i = 0; i < found.size(); ++i) {
    cells[text.kernel.names.stages[i]] = found[i];
  }
  const int scan = static_cast<int>(found.size()) - 1;
  EXPECT_EQ(cells, (std::map<std::string, int>{{"X", -1},
                                               {"S.init", -1},
                                               {"S.state", scan},
                                               {"D", scan},
                                               {"S.update", scan},
                                               {"S", -1}}));
}

TEST(StepText, ShowsAStepAsItWasWritten) {
  const TextKernel text = testing::kernel_of(
      "kernel k(A: float32[n]) -> (C: float32[n]) {\n"
      "  B: float32[n]\n"
      "  B[i] = A[i]\n"
      "  C[i] = B[i]\n"
      "  schedule cpu { split(C.i, parts=4) compute_at(B, C.i.outer) bind(C.i.inner, threadIdx.x) "
      "}\n"
      "}\n");
  const AxisTable table =
      axis_table(text.kernel.definition, text.kernel.names, text.schedules[0].second);
  std::vector<std::string> shown;
  for (const Step& step : text.schedules[0].second.steps) {
    shown.push_back(text_of(step, table));
  }
  EXPECT_EQ(shown,
            (Names{"split(i, parts=4)", "compute_at(B, C.i.outer)", "bind(i.inner, threadIdx.x)"}));
}

}  // namespace
}  // namespace kiln::language
