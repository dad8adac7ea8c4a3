#include "compiler/language/state/schedule_state.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
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

TEST(ScheduleState, HoldsWhatStepsDefineInOrder) {
  const TextKernel text = testing::kernel_of(
      "kernel k(A: float32[n, l]) -> (C: float32[n]) {\n"
      "  C[i] = sum[k < l](A[i, k])\n"
      "  schedule cpu {\n"
      "    split(C.k, factor=4)\n"
      "    fuse(C.i, C.k.outer)\n"
      "  }\n"
      "}\n");
  const ScheduleState state(text.kernel.definition, text.kernel.names, text.schedules[0].second);
  ASSERT_EQ(state.axes().size(), 5U);
  const auto expect_row = [&](size_t id, const char* name, AxisKind kind, int by, int consumed) {
    EXPECT_EQ(state.axis(id).name, name);
    EXPECT_EQ(state.axis(id).kind, kind) << name;
    EXPECT_EQ(state.axis(id).defined_by, by) << name;
    EXPECT_EQ(state.axis(id).consumed_by, consumed) << name;
    EXPECT_EQ(text.kernel.names.stages[state.axis(id).stage], "C") << name;
  };
  expect_row(0, "i", AxisKind::Data, -1, 1);
  expect_row(1, "k", AxisKind::Reduce, -1, 0);
  expect_row(2, "k.outer", AxisKind::Reduce, 0, 1);
  expect_row(3, "k.inner", AxisKind::Reduce, 0, -1);
  expect_row(4, "i.k.outer.fused", AxisKind::Reduce, 1, -1);
}

TEST(ScheduleState, GivesATileEachItsOwnKind) {
  const TextKernel text = testing::kernel_of(
      "kernel k(A: float32[n, l]) -> (C: float32[n]) {\n"
      "  C[i] = sum[k < l](A[i, k])\n"
      "  schedule cpu { tile(C.i, C.k, 8, 4) }\n"
      "}\n");
  const ScheduleState state(text.kernel.definition, text.kernel.names, text.schedules[0].second);
  EXPECT_EQ(state.axis(2).name, "i.outer");
  EXPECT_EQ(state.axis(2).kind, AxisKind::Data);
  EXPECT_EQ(state.axis(3).name, "k.outer");
  EXPECT_EQ(state.axis(3).kind, AxisKind::Reduce);
}

TEST(ScheduleState, NamesTheStagesOfStepsAndTheirAxes) {
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
  const ScheduleState state(text.kernel.definition, text.kernel.names, text.schedules[0].second);
  Names shown;
  for (const StageRow& stage : state.stages()) {
    std::string line = stage.name + ":";
    for (const AxisId axis : stage.loops.leaves)
      line += " " + std::to_string(axis) + "=" + state.axis(axis).name;
    shown.push_back(line);
  }
  EXPECT_EQ(shown, (Names{"A:", "C: 0=i", "A.shared: 2=ax0 3=ax1",
                          "C.local: 6=i.outer.c 7=i.inner.c 15=k.inner.v",
                          "C.local.rf: 11=i.outer.c 12=k.inner 13=i.inner.c 14=k.outer",
                          "A.shared_1: 16=ax0 17=ax1"}));
  Names steps;
  for (const Step& step : text.schedules[0].second.steps)
    steps.push_back(state.kernel_file_text(step));
  EXPECT_EQ(steps,
            (Names{"cache_read(A, shared, C)", "split(C.i, factor=4)", "cache_write(C, local)",
                   "split(C.local.k, factor=8)", "rfactor(C.local.k.inner, factor_axis=1)",
                   "cache_read(A, shared, C.local.rf)"}));
}

TEST(ScheduleState, NamesTheStagesOfReductions) {
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
  const ScheduleState state(text.kernel.definition, text.kernel.names, text.schedules[0].second);
  Names shown;
  for (const StageRow& stage : state.stages()) {
    if (stage.name != "C" && stage.defined_by < 0) continue;
    std::string line = stage.name + ":";
    for (const AxisId axis : stage.loops.leaves)
      line += " " + state.axis(axis).name;
    shown.push_back(line + (stage.cell_of >= 0 ? " at each step" : ""));
  }
  EXPECT_EQ(shown, (Names{"C: i j", "C.max: i k.outer k.inner", "C.sum: i j k",
                          "s.update.sum: t k at each step", "s.update.sum_1: t q"}));
}

TEST(ScheduleState, WritesStepsThatChangeNoLoops) {
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

TEST(ScheduleState, FindsOwnersInsideExpressionsToo) {
  const TextKernel text = testing::kernel_of(
      "kernel k(A: float32[n]) -> (C: float32[n]) { C[i] = A[i] / sum[k < n](A[k]) }");
  EXPECT_EQ(owners_of_axes(text.kernel.definition), (std::vector<int>{1, 1}));
}

TEST(ScheduleState, FindsTheCellOfAScan) {
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

/// C[i] = sum over k, from B[i] = A[i, 0], under a schedule.
TextKernel sums(const std::string& steps) {
  return testing::kernel_of(
      "kernel k(A: float32[n, l]) -> (C: float32[n]) {\n"
      "  B: float32[n]\n"
      "  B[i] = A[i, 0]\n"
      "  C[i] = sum[k < l](A[i, k] * B[i])\n"
      "  schedule cpu { " +
      steps +
      " }\n"
      "}\n");
}

ScheduleState state_of(const TextKernel& text) {
  return {text.kernel.definition, text.kernel.names, text.schedules[0].second};
}

AxisId find_axis(const ScheduleState& state, std::string_view name) {
  const auto found =
      std::ranges::find_if(state.axes(), [&](const AxisRow& row) { return row.name == name; });
  return static_cast<AxisId>(found - state.axes().begin());
}

Names names_of(const ScheduleState& state, const std::vector<AxisId>& axes) {
  Names names;
  for (const AxisId axis : axes)
    names.push_back(state.axis(axis).name);
  return names;
}

constexpr StageId kB = 1;
constexpr StageId kC = 2;

TEST(ScheduleState, KeepsTheLoopsOfEachStage) {
  const ScheduleState state =
      state_of(sums("split(C.k, factor=4) reorder(C.k.outer, C.i) fuse(C.i, C.k.inner)"));
  EXPECT_EQ(names_of(state, state.stage(kC).loops.leaves), (Names{"k.outer", "i.k.inner.fused"}));
  EXPECT_EQ(state.stage(kC).loops.relations.size(), 2U);
  EXPECT_EQ(names_of(state, state.stage(kB).loops.leaves), Names{"i"});
  EXPECT_EQ(names_of(state, state.defined_by(0)), (Names{"k.outer", "k.inner"}));
}

TEST(ScheduleState, SaysWhatTheLastStepMadeOfTheLoops) {
  const ScheduleState state = state_of(sums("tile(C.i, C.k, 8, 4)"));
  const LoopChange& change = state.last_change();
  ASSERT_EQ(change.relations.size(), 2U);
  EXPECT_EQ(std::get<Split>(change.relations[1]).factor, 4);
  EXPECT_EQ(names_of(state, change.order), (Names{"i.outer", "k.outer", "i.inner", "k.inner"}));
  EXPECT_TRUE(state_of(sums("parallel(C.i)")).last_change().empty());
}

TEST(ScheduleState, KnowsHowALoopRunsAndWhatIsComputedThere) {
  const ScheduleState state =
      state_of(sums("split(C.i, factor=8) parallel(C.i.outer) compute_at(B, C.i.inner)"));
  const Step* how = state.annotation_of(find_axis(state, "i.outer"));
  ASSERT_NE(how, nullptr);
  EXPECT_EQ(how->kind, StepKind::Parallel);
  EXPECT_EQ(state.annotation_of(find_axis(state, "i.inner")), nullptr);
  EXPECT_EQ(state.attached_at(find_axis(state, "i.inner")), kB);
  EXPECT_EQ(state.stage(kB).attach.step, 2);
}

TEST(ScheduleState, LetsGoOfALoopThatNothingIsComputedAtAnyMore) {
  const ScheduleState state =
      state_of(sums("compute_at(B, C.i) compute_root(B) split(C.i, factor=8)"));
  EXPECT_EQ(names_of(state, state.stage(kC).loops.leaves), (Names{"i.outer", "i.inner", "k"}));
}

TEST(ScheduleState, IsAsBeforeAfterARefusal) {
  ScheduleState state = state_of(sums("split(C.k, factor=4) vectorize(C.k.inner)"));
  const size_t axes = state.axes().size();
  const AxisId inner = find_axis(state, "k.inner");
  const Step split{.kind = StepKind::Split, .stage = kC, .axes = {inner}, .factors = {2}};
  testing::expect_error([&] { state.apply(split); }, ErrorKind::InvalidArgument,
                        "axis k.inner was vectorized at line 5; split it before that");
  EXPECT_EQ(state.axes().size(), axes);
  EXPECT_EQ(state.steps().size(), 2U);
  EXPECT_EQ(names_of(state, state.stage(kC).loops.leaves), (Names{"i", "k.outer", "k.inner"}));
  state.apply({.kind = StepKind::Parallel, .stage = kC, .axes = {state.stage(kC).data[0]}});
  EXPECT_EQ(state.steps().size(), 3U);
}

TEST(ScheduleState, RefusesAStepWithoutItsFields) {
  ScheduleState state = state_of(sums(""));
  testing::expect_error([&] { state.apply({.kind = StepKind::Split, .stage = kC}); },
                        ErrorKind::InvalidArgument, "split takes 1 axis, but got 0");
  testing::expect_error([&] { state.apply({.kind = StepKind::ComputeInline, .stage = 9}); },
                        ErrorKind::InvalidArgument,
                        "compute_inline refers to stage 9, but there are 3");
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
  const ScheduleState state(text.kernel.definition, text.kernel.names, text.schedules[0].second);
  std::vector<std::string> shown;
  for (const Step& step : text.schedules[0].second.steps) {
    shown.push_back(state.text_of(step));
  }
  EXPECT_EQ(shown,
            (Names{"split(i, parts=4)", "compute_at(B, C.i.outer)", "bind(i.inner, threadIdx.x)"}));
}

}  // namespace
}  // namespace kiln::language
