// Draws steps that change no loops but how they run: alignment, double buffers, pragmas,
// prefetches, threads of scans, pipelines.
#include <algorithm>

#include "tests/support/schedule_drawer.h"

namespace kiln::testing {
namespace {

using language::StageId;
using language::Step;
using language::StepKind;

/// Updates and inits lie in the memory of their scan.
bool has_own_memory(const ScheduleDrawer& drawer, StageId stage) {
  if (drawer.is_output(stage) || drawer.is_update(stage)) return false;
  return std::none_of(
      drawer.definition.stages.begin(), drawer.definition.stages.end(), [&](const auto& other) {
        const auto* scan = std::get_if<language::Scan>(&other);
        return scan != nullptr &&
               std::any_of(scan->init.begin(), scan->init.end(),
                           [&](const language::TensorId& init) { return init.stage == stage; });
      });
}

/// The step that attaches the stage, one drawn now when there is none yet.
std::optional<Step> attachment_of(ScheduleDrawer& drawer, DrawnStage& stage) {
  draw<StepKind::ComputeAt>(drawer, stage);
  const std::vector<Step>& steps = drawer.schedule.steps;
  const auto found = std::find_if(steps.begin(), steps.end(), [&](const Step& step) {
    return step.kind == StepKind::ComputeAt && step.stage == stage.stage;
  });
  return found == steps.end() ? std::nullopt : std::optional(*found);
}

bool has_step(const ScheduleDrawer& drawer, StepKind kind, StageId stage) {
  return std::ranges::any_of(drawer.schedule.steps, [&](const Step& step) {
    return step.kind == kind && step.stage == stage;
  });
}

}  // namespace

/// Each dimension whole or in two or three digits, in any order.
template <>
void draw<StepKind::TransformLayout>(ScheduleDrawer& drawer, DrawnStage& stage) {
  if (!has_own_memory(drawer, stage.stage)) return;
  for (const StepKind kind :
       {StepKind::TransformLayout, StepKind::StorageAlign, StepKind::Prefetch}) {
    if (has_step(drawer, kind, stage.stage)) return;
  }
  const language::ScheduleState& state = drawer.state;
  const language::StageRow& row = state.stage(stage.stage);
  if (row.kind != language::StageRow::Kind::Compute || row.data.empty()) return;
  std::vector<std::pair<language::AxisId, int64_t>> digits;
  for (const language::AxisId axis : row.data) {
    int64_t factor = 1;
    for (int digit = drawer.random.below(3); digit >= 0; --digit) {
      digits.emplace_back(axis, factor);
      factor *= drawer.random.between(2, 5);
    }
  }
  drawer.random.shuffle(digits);
  Step step{.kind = StepKind::TransformLayout, .stage = stage.stage};
  for (const auto& [axis, factor] : digits) {
    step.axes.push_back(axis);
    step.factors.push_back(factor);
  }
  drawer.add(step);
}

template <>
void draw<StepKind::StorageAlign>(ScheduleDrawer& drawer, DrawnStage& stage) {
  if (!has_own_memory(drawer, stage.stage) || stage.leaves.empty()) return;
  if (has_step(drawer, StepKind::TransformLayout, stage.stage)) return;
  const language::ScheduleState& state = drawer.state;
  const language::StageRow& row = state.stage(stage.stage);
  if (row.kind != language::StageRow::Kind::Compute || row.data.size() < 2) return;
  const int dimension = drawer.random.below(static_cast<int>(row.data.size()) - 1);
  if (dimension == row.time_dimension) return;
  const int factor = drawer.random.pick(std::vector<int>{1, 2, 3, 8, 16, 32});
  Step step{.kind = StepKind::StorageAlign,
            .stage = stage.stage,
            .axes = {row.data[static_cast<size_t>(dimension)]},
            .factors = {factor}};
  step.value = drawer.random.below(factor);
  drawer.add(step);
}

/// Of memory that is not shared it does nothing, so few.
template <>
void draw<StepKind::StorageSwizzle>(ScheduleDrawer& drawer, DrawnStage& stage) {
  if (!has_own_memory(drawer, stage.stage)) return;
  if (!drawer.is_for_gpu && drawer.random.chance(0.5)) return;
  if (drawer.state.stage(stage.stage).kind != language::StageRow::Kind::Compute) return;
  Step step{.kind = StepKind::StorageSwizzle, .stage = stage.stage};
  step.value = drawer.random.pick(std::vector<int>{128, 256, 1024});
  drawer.add(step);
}

template <>
void draw<StepKind::DoubleBuffer>(ScheduleDrawer& drawer, DrawnStage& stage) {
  if (!has_own_memory(drawer, stage.stage) || !attachment_of(drawer, stage)) return;
  drawer.add({.kind = StepKind::DoubleBuffer, .stage = stage.stage});
}

template <>
void draw<StepKind::RollingBuffer>(ScheduleDrawer& drawer, DrawnStage& stage) {
  if (!has_own_memory(drawer, stage.stage)) return;
  const std::optional<Step> attached = attachment_of(drawer, stage);
  // Iterations of a reduction seldom read anything twice.
  if (!attached || drawer.state.axis(attached->at_axis).kind != language::AxisKind::Data) return;
  drawer.add({.kind = StepKind::RollingBuffer, .stage = stage.stage});
}

template <>
void draw<StepKind::Pragma>(ScheduleDrawer& drawer, DrawnStage& stage) {
  if (stage.leaves.empty()) return;
  Leaf& leaf =
      stage.leaves[static_cast<size_t>(drawer.random.below(static_cast<int>(stage.leaves.size())))];
  leaf.taken = true;
  Step step{.kind = StepKind::Pragma, .stage = stage.stage, .axes = {leaf.axis}};
  step.tag = drawer.random.pick(std::vector<std::string>{
      "auto_unroll_max_step", "auto_unroll_max_step", "unroll_explicit", "parallel_launch_point"});
  if (step.tag == "auto_unroll_max_step") step.value = drawer.random.below(65);
  if (step.tag == "unroll_explicit") step.value = drawer.random.below(2);
  drawer.add(step);
}

template <>
void draw<StepKind::Prefetch>(ScheduleDrawer& drawer, DrawnStage& stage) {
  const std::vector<StageId> inputs = drawer.inputs_of(stage.stage);
  const std::optional<size_t> place = stage.random_free_leaf(drawer.random);
  if (inputs.empty() || !place) return;
  const StageId tensor = drawer.random.pick(inputs);
  if (has_step(drawer, StepKind::TransformLayout, tensor)) return;
  stage.leaves[*place].taken = true;
  Step step{.kind = StepKind::Prefetch,
            .stage = tensor,
            .at_stage = stage.stage,
            .at_axis = stage.leaves[*place].axis};
  step.value = drawer.random.below(4);
  drawer.add(step);
}

template <>
void draw<StepKind::EnvThreads>(ScheduleDrawer& drawer, DrawnStage&) {
  for (StageId id = 0; id < drawer.definition.stages.size(); ++id) {
    const auto* scan = std::get_if<language::Scan>(&drawer.definition.stages[id]);
    if (scan == nullptr) continue;
    std::vector<StageId> parts = {scan->update[0].stage};
    if (drawer.random.chance(0.5)) parts.push_back(scan->init[0].stage);
    bool is_bound = false;
    for (const StageId part : parts) {
      DrawnStage* const stage = drawer.find(part);
      const auto place = stage != nullptr ? stage->random_free_leaf(drawer.random) : std::nullopt;
      if (!place || stage->leaves[*place].reduce) continue;
      if (!drawer.bound.insert({part, "threadIdx.x"}).second) continue;
      stage->leaves[*place].taken = true;
      drawer.add({.kind = StepKind::Bind,
                  .stage = part,
                  .axes = {stage->leaves[*place].axis},
                  .tag = "threadIdx.x"});
      is_bound = true;
    }
    if (!is_bound) continue;
    Step step{.kind = StepKind::EnvThreads, .stage = id};
    step.tags = {"threadIdx.x"};
    drawer.add(step);
    return;
  }
}

template <>
void draw<StepKind::SoftwarePipeline>(ScheduleDrawer& drawer, DrawnStage& stage) {
  const std::optional<Step> attached = attachment_of(drawer, stage);
  if (!attached) return;
  Step step{
      .kind = StepKind::SoftwarePipeline, .stage = attached->at_stage, .axes = {attached->at_axis}};
  step.value = drawer.random.between(2, 4);
  drawer.add(step);
}

}  // namespace kiln::testing
