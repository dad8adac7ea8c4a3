// Draws steps on loops: split, fuse, tile, reorder, bind, parallel, vectorize, unroll. Leaves are
// kept as the steps leave them, so that later steps name axes that exist.
#include "tests/support/schedule_drawer.h"

namespace kiln::testing {
namespace {

using language::Step;
using language::StepKind;

/// Vectors and unrolled loops longer than this are no use, and slow to compile.
// Iterations.
constexpr int64_t kMaxCopies = 64;

int64_t random_factor(Random& random) {
  return random.pick(std::vector<int64_t>{1, 2, 3, 4, 5, 8, 16, 32});
}

std::optional<int64_t> ceil_of(const std::optional<int64_t>& extent, int64_t factor) {
  return extent ? std::optional((*extent + factor - 1) / factor) : std::nullopt;
}

/// Where two neighbouring leaves are free and `suits` them.
template <typename Suits>
std::optional<size_t> random_pair(const DrawnStage& stage, Random& random, Suits suits) {
  std::vector<size_t> places;
  for (size_t i = 0; i + 1 < stage.leaves.size(); ++i) {
    const Leaf& a = stage.leaves[i];
    const Leaf& b = stage.leaves[i + 1];
    const bool are_free = !a.taken && !b.taken && !a.time && !b.time;
    if (are_free && suits(a, b)) places.push_back(i);
  }
  if (places.empty()) return std::nullopt;
  return random.pick(places);
}

void mark(ScheduleDrawer& drawer, DrawnStage& stage, size_t place, StepKind kind,
          std::string tag = "") {
  stage.leaves[place].taken = true;
  drawer.add({.kind = kind,
              .stage = stage.stage,
              .axes = {stage.leaves[place].axis},
              .tag = std::move(tag)});
}

/// For marks that neither a reduction nor time can have.
std::optional<size_t> random_data_leaf(const DrawnStage& stage, Random& random) {
  const std::optional<size_t> place = stage.random_free_leaf(random);
  if (!place) return std::nullopt;
  const Leaf& leaf = stage.leaves[*place];
  return leaf.reduce || leaf.time ? std::nullopt : place;
}

/// For marks that copy the body.
std::optional<size_t> random_short_leaf(const DrawnStage& stage, Random& random) {
  const std::optional<size_t> place = stage.random_free_leaf(random);
  if (!place) return std::nullopt;
  const std::optional<int64_t>& extent = stage.leaves[*place].extent;
  return extent && *extent <= kMaxCopies ? place : std::nullopt;
}

}  // namespace

template <>
void draw<StepKind::Split>(ScheduleDrawer& drawer, DrawnStage& stage) {
  const std::optional<size_t> place = stage.random_free_leaf(drawer.random);
  if (!place) return;
  const Leaf leaf = stage.leaves[*place];
  Step step{.kind = StepKind::Split, .stage = stage.stage, .axes = {leaf.axis}};
  const int64_t factor = random_factor(drawer.random);
  const language::AxisId first = drawer.new_axes(2);
  Leaf outer{first, leaf.reduce, ceil_of(leaf.extent, factor), false, leaf.time};
  Leaf inner{first + 1, leaf.reduce, factor, false, leaf.time};
  if (drawer.random.chance(0.2)) {
    step.parts = factor;
    std::swap(outer.extent, inner.extent);
  } else {
    step.factors = {factor};
  }
  stage.leaves[*place] = outer;
  stage.leaves.insert(stage.leaves.begin() + static_cast<long>(*place) + 1, inner);
  drawer.add(step);
}

template <>
void draw<StepKind::Fuse>(ScheduleDrawer& drawer, DrawnStage& stage) {
  const auto place = random_pair(stage, drawer.random,
                                 [](const Leaf& a, const Leaf& b) { return a.reduce == b.reduce; });
  if (!place) return;
  const Leaf a = stage.leaves[*place];
  const Leaf b = stage.leaves[*place + 1];
  Leaf fused{drawer.new_axes(1), a.reduce, std::nullopt};
  if (a.extent && b.extent) fused.extent = *a.extent * *b.extent;
  stage.leaves[*place] = fused;
  stage.leaves.erase(stage.leaves.begin() + static_cast<long>(*place) + 1);
  drawer.add({.kind = StepKind::Fuse, .stage = stage.stage, .axes = {a.axis, b.axis}});
}

template <>
void draw<StepKind::Tile>(ScheduleDrawer& drawer, DrawnStage& stage) {
  const auto place = random_pair(
      stage, drawer.random, [](const Leaf& a, const Leaf& b) { return !a.reduce && !b.reduce; });
  if (!place) return;
  const Leaf x = stage.leaves[*place];
  const Leaf y = stage.leaves[*place + 1];
  const int64_t fx = random_factor(drawer.random);
  const int64_t fy = random_factor(drawer.random);
  drawer.add({.kind = StepKind::Tile,
              .stage = stage.stage,
              .axes = {x.axis, y.axis},
              .factors = {fx, fy}});
  const language::AxisId first = drawer.new_axes(4);
  const std::vector<Leaf> tiled = {{first, false, ceil_of(x.extent, fx)},
                                   {first + 1, false, ceil_of(y.extent, fy)},
                                   {first + 2, false, fx},
                                   {first + 3, false, fy}};
  const auto at = stage.leaves.begin() + static_cast<long>(*place);
  stage.leaves.insert(stage.leaves.erase(at, at + 2), tiled.begin(), tiled.end());
}

template <>
void draw<StepKind::Reorder>(ScheduleDrawer& drawer, DrawnStage& stage) {
  std::vector<size_t> places;
  for (size_t i = 0; i < stage.leaves.size(); ++i) {
    if (drawer.random.chance(0.7) && !stage.leaves[i].time) places.push_back(i);
  }
  if (places.size() < 2) return;
  std::vector<size_t> order = places;
  drawer.random.shuffle(order);
  Step step{.kind = StepKind::Reorder, .stage = stage.stage};
  const std::vector<Leaf> before = stage.leaves;
  for (size_t i = 0; i < places.size(); ++i) {
    stage.leaves[places[i]] = before[order[i]];
    step.axes.push_back(before[order[i]].axis);
  }
  drawer.add(step);
}

template <>
void draw<StepKind::Bind>(ScheduleDrawer& drawer, DrawnStage& stage) {
  const std::optional<size_t> place = drawer.is_for_gpu ? stage.random_free_leaf(drawer.random)
                                                        : random_data_leaf(stage, drawer.random);
  if (!place || stage.leaves[*place].time) return;
  // No block is shared by the iterations of a reduction.
  const bool is_reduction = stage.leaves[*place].reduce;
  const std::string tag =
      drawer.random.pick(is_reduction ? std::vector<std::string>{"threadIdx.x", "threadIdx.y"}
                                      : std::vector<std::string>{"blockIdx.x", "blockIdx.y",
                                                                 "threadIdx.x", "threadIdx.y"});
  if (!drawer.bound.insert({stage.stage, tag}).second) return;
  mark(drawer, stage, *place, StepKind::Bind, tag);
}

template <>
void draw<StepKind::Parallel>(ScheduleDrawer& drawer, DrawnStage& stage) {
  const std::optional<size_t> place = random_data_leaf(stage, drawer.random);
  if (place) mark(drawer, stage, *place, StepKind::Parallel);
}

template <>
void draw<StepKind::Vectorize>(ScheduleDrawer& drawer, DrawnStage& stage) {
  const std::optional<size_t> place = random_short_leaf(stage, drawer.random);
  if (place && !stage.leaves[*place].time) mark(drawer, stage, *place, StepKind::Vectorize);
}

template <>
void draw<StepKind::Unroll>(ScheduleDrawer& drawer, DrawnStage& stage) {
  const std::optional<size_t> place = random_short_leaf(stage, drawer.random);
  if (place) mark(drawer, stage, *place, StepKind::Unroll);
}

}  // namespace kiln::testing
