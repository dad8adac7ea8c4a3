// Steps that make stages (cache_read, rfactor and the like): the service's own rules, in the
// library, say which axes and names come of one, so that they can be used in the next line of the
// program.
//
//   CL = s.cache_write(C)  ->  a tensor whose axes are C's, by other names
#include <algorithm>
#include <optional>

#include <kiln/schedule.h>

#include "client/cpp/encode.h"
#include "client/cpp/fail.h"
#include "client/cpp/inner_reductions.h"
#include "client/cpp/language_border.h"
#include "client/cpp/nodes.h"
#include "client/cpp/padded_value.h"
#include "client/cpp/schedule_state.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

Axis derived_axis(const std::string& name) {
  return Axis(std::make_shared<const AxisNode>(
      AxisNode{AxisKind::Derived, name, std::nullopt, std::nullopt}));
}

/// What a cache_read, or one of a copy, is a copy of.
Tensor copied_from(const ScheduleState& schedule, Tensor tensor) {
  for (auto step = schedule.steps.rbegin(); step != schedule.steps.rend(); ++step) {
    if (step->name == "cache_read" && step->made == tensor.stage())
      tensor = Tensor(step->stage, step->output);
  }
  return tensor;
}

/// Values of the types that the outputs of the new stage have.
std::vector<Expr> values_of(const ScheduleState& schedule, const StepRecord& step) {
  if (step.name == "reduction_stage") {
    return {find_reduction(*step.stage, step.axes.back().node().get()).value().value};
  }
  if (const auto* compute = std::get_if<ComputeStage>(&step.stage->value);
      compute != nullptr && step.name != "cache_read" && step.name != "cache_padded") {
    return compute->bodies;
  }
  const Tensor tensor(step.stage, step.output);
  std::optional<DType> type;
  if (step.name == "cache_padded")
    type = type_of_padded(*step.readers[0], copied_from(schedule, tensor));
  return {make_expr(type.value_or(tensor.dtype()), ReadValue{tensor, {}})};
}

/// The axes of a reduction inside the stage's expression are those of the new stage.
void give_reduction(ScheduleState& schedule, const StepRecord& step, const ComputeStage& compute) {
  const StageNode* stage = step.stage.get();
  std::vector<Axis>& left = schedule.reduced.try_emplace(stage, compute.reduce_axes).first->second;
  for (const Axis& axis : step.axes) {
    const auto at = std::find_if(left.begin(), left.end(),
                                 [&](const Axis& own) { return own.node() == axis.node(); });
    if (at == left.end()) continue;
    left.erase(at);
    schedule.consumed[{stage, axis.node().get()}] =
        fmt::format("made an axis of {} at line {}", step.made->name, step.line);
  }
}

/// What the step leaves of its own stage.
void change_own_stage(ScheduleState& schedule, StepRecord& step, const border::WireStage& wire) {
  const auto* compute = std::get_if<ComputeStage>(&step.stage->value);
  if (step.name == "cache_write") {
    for (const Axis& axis : compute->axes)
      schedule.consumed.erase({step.stage.get(), axis.node().get()});
    schedule.reduced[step.stage.get()] = {};
  } else if (step.name == "rfactor") {
    step.defined.push_back(derived_axis(wire.reduced));
    schedule.owners[step.defined.back().node().get()] = step.stage.get();
    schedule.reduced[step.stage.get()] = {step.defined.back()};
  } else if (step.name == "reduction_stage") {
    give_reduction(schedule, step, *compute);
  }
}

}  // namespace

std::shared_ptr<const StageNode> record_new_stage(ScheduleState& schedule, StepRecord step) {
  schedule.steps.push_back(step);
  border::WireStage wire;
  try {
    EncodedNodes nodes;
    wire = border::new_stage(encode_behind(schedule.outputs, &schedule, nodes));
  } catch (...) {
    schedule.steps.pop_back();
    throw;
  }
  ComputeStage stage{.axes = {}, .bodies = values_of(schedule, step), .reduce_axes = {}};
  for (std::size_t i = 0; i < wire.axes.size(); ++i) {
    step.defined.push_back(derived_axis(wire.axes[i]));
    (i < wire.data ? stage.axes : stage.reduce_axes).push_back(step.defined.back());
  }
  step.made = std::make_shared<const StageNode>(
      StageNode{wire.name, step.file, step.line, std::move(stage)});
  for (const Axis& axis : step.defined)
    schedule.owners[axis.node().get()] = step.made.get();
  change_own_stage(schedule, step, wire);
  schedule.stages.insert(step.made.get());
  schedule.steps.back() = std::move(step);
  return schedule.steps.back().made;
}

}  // namespace detail

Tensor Schedule::cache_read(const Tensor& tensor, const std::string& scope,
                            const std::vector<Tensor>& readers, SourceLocation where) const {
  return cache_read(tensor, scope, readers, {}, where);
}

Tensor Schedule::cache_read(const Tensor& tensor, const std::string& scope,
                            const std::vector<Tensor>& readers, const std::vector<Axis>& layout,
                            SourceLocation where) const {
  detail::StepRecord step{
      .name = "cache_read", .stage = tensor.stage(), .axes = layout, .tag = scope};
  step.output = tensor.output();
  for (const Tensor& reader : readers)
    step.readers.push_back(reader.stage());
  step.file = where.file_name();
  step.line = where.line();
  return Tensor(detail::record_new_stage(*state_, std::move(step)), 0);
}

Tensor Schedule::cache_padded(const Tensor& tensor, const Tensor& reader,
                              SourceLocation where) const {
  detail::StepRecord step{.name = "cache_padded", .stage = tensor.stage()};
  step.output = tensor.output();
  step.readers.push_back(reader.stage());
  step.file = where.file_name();
  step.line = where.line();
  return Tensor(detail::record_new_stage(*state_, std::move(step)), 0);
}

Tensor Schedule::cache_write(const Tensor& tensor, const std::string& scope,
                             SourceLocation where) const {
  detail::StepRecord step{.name = "cache_write", .stage = tensor.stage(), .tag = scope};
  step.file = where.file_name();
  step.line = where.line();
  return Tensor(detail::record_new_stage(*state_, std::move(step)), tensor.output());
}

Tensor Schedule::rfactor(const Tensor& tensor, const Axis& axis, unsigned factor_axis,
                         SourceLocation where) const {
  detail::StepRecord step{.name = "rfactor", .stage = tensor.stage(), .axes = {axis}};
  step.value = factor_axis;
  step.file = where.file_name();
  step.line = where.line();
  return Tensor(detail::record_new_stage(*state_, std::move(step)), tensor.output());
}

Tensor Schedule::reduction_stage(const Tensor& tensor, const Axis& axis,
                                 SourceLocation where) const {
  detail::StepRecord step{.name = "reduction_stage", .stage = tensor.stage(), .axes = {axis}};
  step.tag = "reduction";
  // Where there is none, the service says so.
  if (const auto found = detail::find_reduction(*tensor.stage(), axis.node().get())) {
    step.axes = found->used;
    step.axes.insert(step.axes.end(), found->reduced.begin(), found->reduced.end());
    step.tag = detail::word_for(*found);
  }
  step.file = where.file_name();
  step.line = where.line();
  return Tensor(detail::record_new_stage(*state_, std::move(step)), 0);
}

std::vector<Axis> Stage::reduce_axes() const {
  const auto now = schedule_->reduced.find(stage_.get());
  if (now != schedule_->reduced.end()) return now->second;
  const auto* compute = std::get_if<detail::ComputeStage>(&stage_->value);
  return compute == nullptr ? std::vector<Axis>{} : compute->reduce_axes;
}

}  // namespace client
}  // namespace kiln
