// Schedules as text, by way of the wire: printed in the names of the definition, and read as steps
// that are taken again one by one, so that the program gets its own axes for what they make.
#include <algorithm>

#include <kiln/schedule.h>

#include "client/cpp/encode.h"
#include "client/cpp/fail.h"
#include "client/cpp/language_border.h"
#include "client/cpp/nodes.h"
#include "client/cpp/schedule_state.h"
#include "client/cpp/text_file.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

/// The axis of a stage that this node is. Its owner holds it, as a value.
Axis axis_of(const StageNode& stage, const AxisNode* node) {
  std::vector<Axis> axes;
  if (const auto* compute = std::get_if<ComputeStage>(&stage.value)) {
    axes = compute->axes;
    axes.insert(axes.end(), compute->reduce_axes.begin(), compute->reduce_axes.end());
  } else if (const auto* scan = std::get_if<ScanStage>(&stage.value)) {
    axes = {scan->axis};
  }
  return *std::find_if(axes.begin(), axes.end(),
                       [&](const Axis& axis) { return axis.node().get() == node; });
}

/// Takes the steps of a file in the program's own stages and axes.
class Replay {
 public:
  Replay(ScheduleState& state, const EncodedNodes& nodes, std::string file)
      : state_(state), nodes_(nodes), stages_(nodes.stages), file_(std::move(file)) {}

  void take(const v1::Step& wire) {
    StepRecord step{.name = wire.name(), .stage = stages_.at(wire.stage())};
    const StageNode& owner =
        wire.readers().empty() ? *step.stage : *stages_.at(wire.readers(0));  // of a layout
    for (const std::uint32_t axis : wire.axes())
      step.axes.push_back(this->axis(owner, axis));
    step.factors.assign(wire.factors().begin(), wire.factors().end());
    if (wire.parts() > 0) step.parts = wire.parts();
    step.tag = wire.tag();
    step.tags.assign(wire.tags().begin(), wire.tags().end());
    if (step.name == "compute_at" || step.name == "prefetch") {
      step.at_stage = stages_.at(wire.at_stage());
      step.at_axis = axis(*step.at_stage, wire.at_axis());
    }
    step.file = file_;
    step.line = wire.line().line();
    step.output = wire.output();
    for (const std::uint32_t reader : wire.readers())
      step.readers.push_back(stages_.at(reader));
    step.value = wire.value();
    if (border::defines_stage(wire.name())) {
      stages_.push_back(record_new_stage(state_, std::move(step)));
      const std::vector<Axis>& made = state_.steps.back().defined;
      made_.insert(made_.end(), made.begin(), made.end());
      return;
    }
    const std::vector<Axis> made = record_step(state_, std::move(step));
    made_.insert(made_.end(), made.begin(), made.end());
  }

 private:
  Axis axis(const StageNode& stage, std::uint32_t id) const {
    return id < nodes_.axes.size() ? axis_of(stage, nodes_.axes[id])
                                   : made_.at(id - nodes_.axes.size());
  }

  ScheduleState& state_;
  const EncodedNodes& nodes_;
  std::vector<std::shared_ptr<const StageNode>> stages_;
  const std::string file_;
  std::vector<Axis> made_;
};

}  // namespace
}  // namespace detail

std::string Schedule::text(std::string_view target) const {
  detail::EncodedNodes nodes;
  const border::WireKernel kernel = detail::encode_behind(state_->outputs, state_.get(), nodes);
  return border::print_schedule(kernel, target, kernel.schedules[0].second);
}

void Schedule::save(const std::string& path, std::string_view target) const {
  detail::write_text(path, text(target));
}

Schedule parse_schedule(std::string_view text, const std::vector<Tensor>& outputs,
                        std::string_view target, const std::string& file_name) {
  Schedule schedule = create_schedule(outputs);
  detail::EncodedNodes nodes;
  const border::WireKernel kernel = detail::encode_behind(outputs, nullptr, nodes);
  const auto blocks = border::parse_schedules(text, file_name, kernel);
  const auto block = std::find_if(blocks.begin(), blocks.end(),
                                  [&](const auto& each) { return each.first == target; });
  if (block == blocks.end()) {
    detail::fail(ErrorKind::NotFound, "SCHEDULE", "{} has no schedule for {}", file_name, target);
  }
  detail::Replay replay(*schedule.state(), nodes, file_name);
  for (const v1::Step& step : block->second.steps())
    replay.take(step);
  return schedule;
}

Schedule load_schedule(const std::string& path, const std::vector<Tensor>& outputs,
                       std::string_view target) {
  return parse_schedule(detail::read_text(path), outputs, target, path);
}

}  // namespace client
}  // namespace kiln
