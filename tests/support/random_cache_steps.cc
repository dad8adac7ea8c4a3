// Draws steps that make stages: copies read and written, rfactor, scopes. What the new stage's
// loops are comes from the language's own table of axes.
#include <algorithm>

#include "tests/support/schedule_drawer.h"

namespace kiln::testing {
namespace {

using language::AxisId;
using language::ScheduleState;
using language::StageId;
using language::Step;
using language::StepKind;

std::string random_scope(const ScheduleDrawer& drawer) {
  std::vector<std::string> scopes = {"global", "shared", "local"};
  if (drawer.is_for_gpu) scopes.emplace_back("warp");
  return drawer.random.pick(scopes);
}

/// The loops of a stage that steps may name, as the state has them. Extents stay known.
std::vector<Leaf> leaves_of(const ScheduleState& state, StageId stage,
                            const std::vector<Leaf>& known) {
  const language::StageRow& row = state.stage(stage);
  std::vector<Leaf> leaves;
  for (size_t i = 0; i < row.loops.leaves.size(); ++i) {
    const AxisId axis = row.loops.leaves[i];
    const bool is_time = row.cell_of >= 0 && row.time_dimension >= 0 &&
                         row.data[static_cast<size_t>(row.time_dimension)] == axis;
    if (is_time) continue;
    Leaf leaf{axis, state.axis(axis).kind == language::AxisKind::Reduce, std::nullopt};
    for (const Leaf& other : known) {
      if (other.axis == axis) leaf = other;
    }
    leaves.push_back(leaf);
  }
  return leaves;
}

bool is_free(const Leaf& leaf) { return !leaf.taken; }

}  // namespace

StageId add_stage(ScheduleDrawer& drawer, const Step& step) {
  const size_t before = drawer.state.axes().size();
  drawer.add(step);
  const ScheduleState& state = drawer.state;
  drawer.new_axes(static_cast<int>(state.axes().size() - before));
  const auto id = static_cast<StageId>(state.stages().size() - 1);
  drawer.stages.push_back({id, leaves_of(state, id, {})});
  return id;
}

namespace {

/// The loops of a stage in any order, all of them or all but one.
std::vector<AxisId> random_layout(ScheduleDrawer& drawer, const DrawnStage& stage) {
  std::vector<AxisId> loops;
  for (const Leaf& leaf : stage.leaves)
    loops.push_back(leaf.axis);
  for (size_t i = loops.size(); i > 1; --i)
    std::swap(loops[i - 1],
              loops[static_cast<size_t>(drawer.random.between(0, static_cast<int>(i) - 1))]);
  if (loops.size() > 1 && drawer.random.chance(0.4)) loops.pop_back();
  return loops;
}

/// Cuts a loop into tiles, whose elements are lanes of a warp; the loop over the tiles.
AxisId bind_lanes(ScheduleDrawer& drawer, DrawnStage& stage, size_t place, int64_t lanes) {
  const Leaf leaf = stage.leaves[place];
  const AxisId first = drawer.new_axes(2);
  stage.leaves[place] = {.axis = first, .taken = true};
  stage.leaves.insert(stage.leaves.begin() + static_cast<long>(place) + 1,
                      {.axis = first + 1, .extent = lanes, .taken = true});
  drawer.add(
      {.kind = StepKind::Split, .stage = stage.stage, .axes = {leaf.axis}, .factors = {lanes}});
  drawer.add(
      {.kind = StepKind::Bind, .stage = stage.stage, .axes = {first + 1}, .tag = "threadIdx.x"});
  drawer.bound.insert({stage.stage, "threadIdx.x"});
  return first;
}

bool has_lanes(const ScheduleDrawer& drawer, const DrawnStage& stage) {
  return drawer.bound.contains({stage.stage, "threadIdx.x"});
}

/// Where a stage has a loop of its own that lanes may share.
std::optional<size_t> loop_for_lanes(const ScheduleDrawer& drawer, const DrawnStage& stage) {
  for (size_t i = stage.leaves.size(); i > 0 && !has_lanes(drawer, stage); --i) {
    const Leaf& leaf = stage.leaves[i - 1];
    if (!leaf.taken && !leaf.reduce && !leaf.time) return i - 1;
  }
  return std::nullopt;
}

/// Memory of a warp is filled and read by the lanes of one, or refused: mostly the copy is computed
/// where the reader's tiles are, by as many threads.
void share_among_lanes(ScheduleDrawer& drawer, StageId copy_id, StageId reader_id) {
  DrawnStage& reader = *drawer.find(reader_id);
  DrawnStage& copy = *drawer.find(copy_id);
  const std::optional<size_t> loop = loop_for_lanes(drawer, reader);
  const std::optional<size_t> own = loop_for_lanes(drawer, copy);
  if (!loop || !own || drawer.random.chance(0.2)) return;
  const int64_t lanes = drawer.random.pick(std::vector<int64_t>{4, 8, 32});
  const AxisId tiles = bind_lanes(drawer, reader, *loop, lanes);
  copy.placed = true;
  drawer.add(
      {.kind = StepKind::ComputeAt, .stage = copy_id, .at_stage = reader_id, .at_axis = tiles});
  bind_lanes(drawer, copy, *own, lanes);
}

}  // namespace

template <>
void draw<StepKind::CacheRead>(ScheduleDrawer& drawer, DrawnStage& stage) {
  const std::vector<StageId> inputs = drawer.inputs_of(stage.stage);
  if (inputs.empty()) return;
  const StageId tensor = drawer.random.pick(inputs);
  std::vector<StageId> readers = {stage.stage};
  for (const StageId other : drawer.readers_of(tensor)) {
    if (other != stage.stage && drawer.random.chance(0.5)) readers.push_back(other);
  }
  Step step{.kind = StepKind::CacheRead, .stage = tensor, .tag = random_scope(drawer)};
  step.readers = readers;
  const bool in_scan = drawer.state.stage(tensor).cell_of >= 0;
  if (readers.size() == 1 && !in_scan && drawer.random.chance(0.5))
    step.axes = random_layout(drawer, stage);
  // `stage` does not outlive the next line, which adds a stage.
  const StageId copy = add_stage(drawer, step);
  drawer.redirect(tensor, readers, copy);
  if (step.tag == "warp" && readers.size() == 1) share_among_lanes(drawer, copy, readers[0]);
}

template <>
void draw<StepKind::CacheWrite>(ScheduleDrawer& drawer, DrawnStage& stage) {
  if (stage.placed || !std::all_of(stage.leaves.begin(), stage.leaves.end(), is_free)) return;
  const StageId source = stage.stage;
  const Step step{.kind = StepKind::CacheWrite, .stage = source, .tag = random_scope(drawer)};
  const std::vector<Leaf> before = stage.leaves;
  const StageId made = add_stage(drawer, step);
  drawer.hand_over(source, made);
  drawer.find(source)->leaves = leaves_of(drawer.state, source, before);
}

template <>
void draw<StepKind::Rfactor>(ScheduleDrawer& drawer, DrawnStage& stage) {
  std::vector<AxisId> choices;
  for (const Leaf& leaf : stage.leaves) {
    if (leaf.reduce && leaf.taken) return;
    if (leaf.reduce) choices.push_back(leaf.axis);
  }
  if (choices.empty()) return;
  const StageId source = stage.stage;
  Step step{.kind = StepKind::Rfactor, .stage = source, .axes = {drawer.random.pick(choices)}};
  const size_t dimensions = drawer.state.stage(source).data.size();
  step.value = drawer.random.between(0, static_cast<int>(dimensions));
  const std::vector<Leaf> before = stage.leaves;
  const StageId made = add_stage(drawer, step);
  drawer.hand_over(source, made);
  drawer.find(source)->leaves = leaves_of(drawer.state, source, before);
}

template <>
void draw<StepKind::SetScope>(ScheduleDrawer& drawer, DrawnStage& stage) {
  if (drawer.is_output(stage.stage)) return;
  drawer.add({.kind = StepKind::SetScope, .stage = stage.stage, .tag = random_scope(drawer)});
}

}  // namespace kiln::testing
