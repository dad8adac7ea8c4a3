#include "tests/support/random_schedule.h"

#include <algorithm>
#include <optional>
#include <set>

namespace kiln::testing {
namespace {

using language::AxisId;
using language::Definition;
using language::Schedule;
using language::StageId;
using language::Step;
using language::StepKind;

struct Leaf {
  AxisId axis;
  bool reduce;
  std::optional<int64_t> extent;  // when it is a constant
  bool annotated = false;
};

struct StageState {
  StageId stage;
  std::vector<Leaf> leaves;
  bool placed = false;  // inlined or attached
  bool inlinable = true;
};

/// What one expression tree reads and reduces over.
struct Contents {
  std::set<StageId> reads;
  std::vector<AxisId> reduce_axes;
};

void collect(const Definition& definition, language::ExprId id, Contents& contents) {
  const language::Expression& expression = definition.expressions[id];
  if (const auto* operation = std::get_if<language::Operation>(&expression.node)) {
    for (const auto operand : operation->operands)
      collect(definition, operand, contents);
  } else if (const auto* cast = std::get_if<language::CastTo>(&expression.node)) {
    collect(definition, cast->operand, contents);
  } else if (const auto* read = std::get_if<language::Read>(&expression.node)) {
    contents.reads.insert(read->tensor.stage);
    for (const auto index : read->indices)
      collect(definition, index, contents);
  } else if (const auto* reduction = std::get_if<language::Reduction>(&expression.node)) {
    for (const AxisId axis : reduction->axes)
      contents.reduce_axes.push_back(axis);
    collect(definition, reduction->source, contents);
  }
}

class Drawer {
 public:
  Drawer(const Definition& definition, Random& random)
      : definition_(definition),
        random_(random),
        next_axis_(static_cast<AxisId>(definition.axes.size())) {
    std::set<StageId> updates;
    for (const language::Stage& stage : definition.stages) {
      if (const auto* scan = std::get_if<language::Scan>(&stage)) {
        for (const auto& tensor : scan->update)
          updates.insert(tensor.stage);
      }
    }
    for (StageId id = 0; id < definition.stages.size(); ++id) {
      const auto* compute = std::get_if<language::Compute>(&definition.stages[id]);
      if (compute != nullptr) add_stage(id, *compute, updates.contains(id));
    }
  }

  Schedule draw() {
    const int steps = random_.between(1, 8);
    for (int i = 0; i < steps * 3 && static_cast<int>(schedule_.steps.size()) < steps; ++i)
      add_step();
    return std::move(schedule_);
  }

 private:
  std::optional<int64_t> constant_extent(AxisId axis) const {
    const auto& node = definition_.expressions[definition_.axes[axis].extent].node;
    const auto* constant = std::get_if<language::IntegerConstant>(&node);
    return constant != nullptr ? std::optional(constant->value) : std::nullopt;
  }

  void add_stage(StageId id, const language::Compute& compute, bool is_update) {
    StageState state{id, {}};
    for (size_t d = is_update ? 1 : 0; d < compute.axes.size(); ++d) {
      state.leaves.push_back({compute.axes[d], false, constant_extent(compute.axes[d])});
    }
    Contents contents;
    for (const auto body : compute.bodies)
      collect(definition_, body, contents);
    for (const AxisId axis : contents.reduce_axes) {
      state.leaves.push_back({axis, true, constant_extent(axis)});
    }
    state.inlinable = contents.reduce_axes.empty() && !is_update && !is_output(id);
    reads_[id] = contents.reads;
    stages_.push_back(std::move(state));
  }

  bool is_output(StageId id) const {
    return std::any_of(definition_.parameters.begin(), definition_.parameters.end(),
                       [&](const language::TensorId& tensor) { return tensor.stage == id; });
  }

  void add_step() {
    if (stages_.empty()) return;
    StageState& state = stages_[random_.below(static_cast<int>(stages_.size()))];
    switch (random_.below(12)) {
      case 0:
      case 1: return split(state);
      case 2: return fuse(state);
      case 3: return tile(state);
      case 4: return reorder(state);
      case 5: return annotate(state, StepKind::Bind);
      case 6: return annotate(state, StepKind::Parallel);
      case 7: return annotate(state, StepKind::Vectorize);
      case 8: return annotate(state, StepKind::Unroll);
      case 9: return compute_at(state);
      case 10: return compute_inline(state);
      default: return compute_root(state);
    }
  }

  int random_leaf(const StageState& state) {
    std::vector<int> free;
    for (size_t i = 0; i < state.leaves.size(); ++i) {
      if (!state.leaves[i].annotated) free.push_back(static_cast<int>(i));
    }
    return free.empty() ? -1 : random_.pick(free);
  }

  int64_t random_factor() { return random_.pick(std::vector<int64_t>{1, 2, 3, 4, 5, 8, 16, 32}); }

  static std::optional<int64_t> ceil_of(const std::optional<int64_t>& extent, int64_t factor) {
    return extent ? std::optional((*extent + factor - 1) / factor) : std::nullopt;
  }

  void split(StageState& state) {
    const int at = random_leaf(state);
    if (at < 0) return;
    const Leaf leaf = state.leaves[at];
    Step step{.kind = StepKind::Split, .stage = state.stage, .axes = {leaf.axis}};
    const int64_t factor = random_factor();
    Leaf outer{next_axis_, leaf.reduce, ceil_of(leaf.extent, factor)};
    Leaf inner{next_axis_ + 1, leaf.reduce, factor};
    if (random_.chance(0.2)) {
      step.parts = factor;
      std::swap(outer.extent, inner.extent);
    } else {
      step.factors = {factor};
    }
    next_axis_ += 2;
    state.leaves[at] = outer;
    state.leaves.insert(state.leaves.begin() + at + 1, inner);
    schedule_.steps.push_back(step);
  }

  void fuse(StageState& state) {
    std::vector<int> places;
    for (size_t i = 0; i + 1 < state.leaves.size(); ++i) {
      const Leaf& a = state.leaves[i];
      const Leaf& b = state.leaves[i + 1];
      if (!a.annotated && !b.annotated && a.reduce == b.reduce)
        places.push_back(static_cast<int>(i));
    }
    if (places.empty()) return;
    const int at = random_.pick(places);
    const Leaf a = state.leaves[at];
    const Leaf b = state.leaves[at + 1];
    Leaf fused{next_axis_++, a.reduce, std::nullopt};
    if (a.extent && b.extent) fused.extent = *a.extent * *b.extent;
    state.leaves[at] = fused;
    state.leaves.erase(state.leaves.begin() + at + 1);
    schedule_.steps.push_back(
        {.kind = StepKind::Fuse, .stage = state.stage, .axes = {a.axis, b.axis}});
  }

  void tile(StageState& state) {
    std::vector<int> places;
    for (size_t i = 0; i + 1 < state.leaves.size(); ++i) {
      const Leaf& a = state.leaves[i];
      const Leaf& b = state.leaves[i + 1];
      if (!a.annotated && !b.annotated && !a.reduce && !b.reduce)
        places.push_back(static_cast<int>(i));
    }
    if (places.empty()) return;
    const int at = random_.pick(places);
    const Leaf x = state.leaves[at];
    const Leaf y = state.leaves[at + 1];
    const int64_t fx = random_factor();
    const int64_t fy = random_factor();
    schedule_.steps.push_back({.kind = StepKind::Tile,
                               .stage = state.stage,
                               .axes = {x.axis, y.axis},
                               .factors = {fx, fy}});
    const std::vector<Leaf> tiled = {{next_axis_, false, ceil_of(x.extent, fx)},
                                     {next_axis_ + 1, false, ceil_of(y.extent, fy)},
                                     {next_axis_ + 2, false, fx},
                                     {next_axis_ + 3, false, fy}};
    next_axis_ += 4;
    state.leaves.erase(state.leaves.begin() + at, state.leaves.begin() + at + 2);
    state.leaves.insert(state.leaves.begin() + at, tiled.begin(), tiled.end());
  }

  void reorder(StageState& state) {
    if (state.leaves.size() < 2) return;
    std::vector<int> places;
    for (size_t i = 0; i < state.leaves.size(); ++i) {
      if (random_.chance(0.7)) places.push_back(static_cast<int>(i));
    }
    if (places.size() < 2) return;
    std::vector<int> order = places;
    random_.shuffle(order);
    Step step{.kind = StepKind::Reorder, .stage = state.stage};
    const std::vector<Leaf> before = state.leaves;
    for (size_t i = 0; i < places.size(); ++i) {
      state.leaves[places[i]] = before[order[i]];
      step.axes.push_back(before[order[i]].axis);
    }
    schedule_.steps.push_back(step);
  }

  void annotate(StageState& state, StepKind kind) {
    const int at = random_leaf(state);
    if (at < 0) return;
    Leaf& leaf = state.leaves[at];
    const bool needs_constant = kind == StepKind::Vectorize || kind == StepKind::Unroll;
    if (needs_constant && (!leaf.extent || *leaf.extent > 64)) return;
    if (leaf.reduce && (kind == StepKind::Parallel || kind == StepKind::Bind)) return;
    Step step{.kind = kind, .stage = state.stage, .axes = {leaf.axis}};
    if (kind == StepKind::Bind) {
      const std::string tag = random_.pick(
          std::vector<std::string>{"blockIdx.x", "blockIdx.y", "threadIdx.x", "threadIdx.y"});
      if (!bound_.insert({state.stage, tag}).second) return;
      step.tag = tag;
    }
    leaf.annotated = true;
    schedule_.steps.push_back(step);
  }

  StageState* find(StageId stage) {
    for (StageState& state : stages_) {
      if (state.stage == stage) return &state;
    }
    return nullptr;
  }

  void compute_at(StageState& state) {
    if (is_output(state.stage) || state.placed) return;
    std::vector<StageId> consumers;
    for (const auto& [reader, reads] : reads_) {
      if (reads.contains(state.stage)) consumers.push_back(reader);
    }
    if (consumers.size() != 1) return;
    StageState* consumer = find(consumers[0]);
    if (consumer == nullptr || consumer->leaves.empty()) return;
    const Leaf& leaf = random_.pick(consumer->leaves);
    state.placed = true;
    schedule_.steps.push_back({.kind = StepKind::ComputeAt,
                               .stage = state.stage,
                               .at_stage = consumer->stage,
                               .at_axis = leaf.axis});
    // The axis must stay a loop of the consumer.
    for (Leaf& other : consumer->leaves) {
      if (other.axis == leaf.axis) other.annotated = true;
    }
  }

  void compute_inline(StageState& state) {
    if (!state.inlinable || state.placed) return;
    const bool touched =
        std::any_of(schedule_.steps.begin(), schedule_.steps.end(), [&](const Step& step) {
          return step.stage == state.stage ||
                 (step.kind == StepKind::ComputeAt && step.at_stage == state.stage);
        });
    if (touched) return;
    state.placed = true;
    state.leaves.clear();
    schedule_.steps.push_back({.kind = StepKind::ComputeInline, .stage = state.stage});
  }

  void compute_root(StageState& state) {
    if (state.placed) return;
    schedule_.steps.push_back({.kind = StepKind::ComputeRoot, .stage = state.stage});
  }

  const Definition& definition_;
  Random& random_;
  AxisId next_axis_;
  std::vector<StageState> stages_;
  std::map<StageId, std::set<StageId>> reads_;
  std::set<std::pair<StageId, std::string>> bound_;
  Schedule schedule_;
};

}  // namespace

Schedule random_schedule(const Definition& definition, Random& random) {
  return Drawer(definition, random).draw();
}

}  // namespace kiln::testing
