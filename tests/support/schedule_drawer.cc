// The state of a schedule that is being drawn: the leaves of each stage, who reads whom, and what
// is taken, so that most steps that are drawn are ones that the compiler accepts.
#include "tests/support/schedule_drawer.h"

#include <algorithm>

#include "compiler/language/check/time_dimensions.h"
#include "runtime/core/error.h"

namespace kiln::testing {
namespace {

using language::AxisId;
using language::Definition;
using language::StageId;
using language::Step;
using language::StepKind;

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
    for (const AxisId axis : reduction->axes) {
      contents.reduce_axes.push_back(axis);
      collect(definition, definition.axes[axis].minimum, contents);
      collect(definition, definition.axes[axis].extent, contents);
    }
    for (const language::ExprId part : language::parts_of(*reduction))
      collect(definition, part, contents);
  }
}

/// Names do not matter to what is drawn.
language::SourceMap nameless(const Definition& definition) {
  language::SourceMap names;
  names.axes.resize(definition.axes.size());
  names.stages.resize(definition.stages.size());
  return names;
}

}  // namespace

std::optional<size_t> DrawnStage::random_free_leaf(Random& random) const {
  std::vector<size_t> free;
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (!leaves[i].taken) free.push_back(i);
  }
  if (free.empty()) return std::nullopt;
  return random.pick(free);
}

ScheduleDrawer::ScheduleDrawer(const Definition& definition, Random& source)
    : definition(definition),
      random(source),
      state(definition, nameless(definition)),
      next_axis_(static_cast<AxisId>(definition.axes.size())) {
  const std::vector<int> time = language::time_dimensions(definition);
  for (StageId id = 0; id < definition.stages.size(); ++id) {
    if (const auto* compute = std::get_if<language::Compute>(&definition.stages[id])) {
      add_stage(id, *compute, time[id]);
    } else if (const auto* scan = std::get_if<language::Scan>(&definition.stages[id])) {
      add_scan(id, *scan);
    } else if (const auto* scatter = std::get_if<language::Scatter>(&definition.stages[id])) {
      add_scatter(id, *scatter);
    }
  }
}

std::optional<int64_t> ScheduleDrawer::constant_extent(AxisId axis) const {
  const auto& node = definition.expressions[definition.axes[axis].extent].node;
  const auto* constant = std::get_if<language::IntegerConstant>(&node);
  return constant != nullptr ? std::optional(constant->value) : std::nullopt;
}

void ScheduleDrawer::add_scan(StageId id, const language::Scan& scan) {
  DrawnStage drawn{.stage = id, .placed = true};
  drawn.leaves.push_back({.axis = scan.axis, .extent = constant_extent(scan.axis), .time = true});
  stages.push_back(std::move(drawn));
}

void ScheduleDrawer::add_scatter(StageId id, const language::Scatter& scatter) {
  DrawnStage drawn{.stage = id, .leaves = {}, .placed = true};
  for (const AxisId axis : scatter.axes)
    drawn.leaves.push_back({.axis = axis, .extent = constant_extent(axis)});
  Contents contents{.reads = {scatter.base.stage}, .reduce_axes = {}};
  for (const auto index : scatter.indices)
    collect(definition, index, contents);
  collect(definition, scatter.update, contents);
  reads_[id] = contents.reads;
  stages.push_back(std::move(drawn));
}

void ScheduleDrawer::add_stage(StageId id, const language::Compute& compute, int time) {
  DrawnStage drawn{id, {}};
  for (size_t d = 0; d < compute.axes.size(); ++d) {
    if (static_cast<int>(d) == time) continue;
    drawn.leaves.push_back({compute.axes[d], false, constant_extent(compute.axes[d])});
  }
  Contents contents;
  for (const auto body : compute.bodies)
    collect(definition, body, contents);
  for (const AxisId axis : contents.reduce_axes) {
    drawn.leaves.push_back({axis, true, constant_extent(axis)});
  }
  drawn.inlinable =
      contents.reduce_axes.empty() && !is_update(id) && (!is_output(id) || is_read(id));
  reads_[id] = contents.reads;
  stages.push_back(std::move(drawn));
}

AxisId ScheduleDrawer::new_axes(int count) {
  const AxisId first = next_axis_;
  next_axis_ += static_cast<AxisId>(count);
  return first;
}

DrawnStage* ScheduleDrawer::find(StageId stage) {
  for (DrawnStage& drawn : stages) {
    if (drawn.stage == stage) return &drawn;
  }
  return nullptr;
}

bool ScheduleDrawer::is_output(StageId stage) const {
  return std::any_of(definition.parameters.begin(), definition.parameters.end(),
                     [&](const language::TensorId& tensor) { return tensor.stage == stage; });
}

bool ScheduleDrawer::is_read(StageId stage) const {
  return std::any_of(definition.expressions.begin(), definition.expressions.end(),
                     [&](const language::Expression& expression) {
                       const auto* read = std::get_if<language::Read>(&expression.node);
                       return read != nullptr && read->tensor.stage == stage;
                     });
}

bool ScheduleDrawer::is_update(StageId stage) const {
  return std::any_of(definition.stages.begin(), definition.stages.end(), [&](const auto& other) {
    const auto* scan = std::get_if<language::Scan>(&other);
    return scan != nullptr &&
           std::any_of(scan->update.begin(), scan->update.end(),
                       [&](const language::TensorId& update) { return update.stage == stage; });
  });
}

std::vector<StageId> ScheduleDrawer::readers_of(StageId stage) const {
  std::vector<StageId> readers;
  for (const auto& [reader, reads] : reads_) {
    if (reads.contains(stage)) readers.push_back(reader);
  }
  return readers;
}

std::vector<StageId> ScheduleDrawer::inputs_of(StageId stage) const {
  const auto reads = reads_.find(stage);
  if (reads == reads_.end()) return {};
  return {reads->second.begin(), reads->second.end()};
}

void ScheduleDrawer::redirect(StageId stage, const std::vector<StageId>& readers, StageId copy) {
  for (const StageId reader : readers) {
    reads_[reader].erase(stage);
    reads_[reader].insert(copy);
  }
  reads_[copy] = {stage};
}

void ScheduleDrawer::hand_over(StageId from, StageId to) {
  reads_[to] = std::move(reads_[from]);
  reads_[from] = {to};
}

void ScheduleDrawer::give_part(StageId from, StageId made, const std::set<StageId>& reads) {
  reads_[made] = reads;
  reads_[from].insert(made);
}

bool ScheduleDrawer::is_touched(StageId stage) const {
  return std::any_of(schedule.steps.begin(), schedule.steps.end(), [&](const Step& step) {
    return step.stage == stage || (step.kind == StepKind::ComputeAt && step.at_stage == stage);
  });
}

void ScheduleDrawer::add(const Step& step) {
  schedule.steps.push_back(step);
  try {
    if (!is_refused) state.apply(step);
  } catch (const Error&) {
    is_refused = true;
  }
}

}  // namespace kiln::testing
