// Records steps and refuses at the caller's line what needs neither sizes nor a proof: a foreign
// axis, one that a step has used up, a factor below 1. All else is the service's to refuse.
//   s[C].split(i, 4); s[C].vectorize(i)  ->  vectorize(i): axis i was split into i.outer, i.inner
//   at line 12
#include <algorithm>
#include <array>
#include <string_view>

#include <kiln/schedule.h>

#include "client/cpp/fail.h"
#include "client/cpp/language_border.h"
#include "client/cpp/nodes.h"
#include "client/cpp/schedule_state.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

constexpr std::size_t kLongestAxisName = 1024;  // as the service has it
constexpr std::array kThreadTags{"blockIdx.x",  "blockIdx.y",  "blockIdx.z", "threadIdx.x",
                                 "threadIdx.y", "threadIdx.z", "vthread"};

/// Walks definitions from tensors to what they read.
class StagesBehind {
 public:
  void visit(const Tensor& tensor) {
    if (!stages_.insert(tensor.stage().get()).second) return;
    if (const auto* compute = std::get_if<ComputeStage>(&tensor.stage()->value)) {
      for (const Expr& body : compute->bodies)
        visit(body);
    } else if (const auto* scan = std::get_if<ScanStage>(&tensor.stage()->value)) {
      for (const auto* list : {&scan->init, &scan->update, &scan->state, &scan->inputs}) {
        for (const Tensor& part : *list)
          visit(part);
      }
    } else if (const auto* scatter = std::get_if<ScatterStage>(&tensor.stage()->value)) {
      visit(scatter->base);
      for (const Expr& index : scatter->indices)
        visit(index);
      visit(scatter->update);
    }
  }
  std::unordered_set<const StageNode*> take() { return std::move(stages_); }

 private:
  void visit(const Expr& expr) {
    if (!seen_.insert(expr.node().get()).second) return;
    if (const auto* operation = std::get_if<OperationValue>(&expr.node()->value)) {
      for (const Expr& operand : operation->operands)
        visit(operand);
    } else if (const auto* cast = std::get_if<CastValue>(&expr.node()->value)) {
      visit(cast->operand);
    } else if (const auto* read = std::get_if<ReadValue>(&expr.node()->value)) {
      visit(read->tensor);
      for (const Expr& index : read->indices)
        visit(index);
    } else if (const auto* reduction = std::get_if<ReductionValue>(&expr.node()->value)) {
      for (const ReduceAxis& axis : reduction->axes) {
        visit(*axis.node()->minimum);
        visit(*axis.node()->extent);
      }
      for (const Expr& part : reduction->parts())
        visit(part);
    }
  }

  std::unordered_set<const StageNode*> stages_;
  std::unordered_set<const ExprNode*> seen_;
};

bool owns(const StageNode& stage, const AxisNode* axis) {
  const auto holds = [&](const std::vector<Axis>& axes) {
    return std::any_of(axes.begin(), axes.end(),
                       [&](const Axis& own) { return own.node().get() == axis; });
  };
  if (const auto* compute = std::get_if<ComputeStage>(&stage.value)) {
    return holds(compute->axes) || holds(compute->reduce_axes);
  }
  if (const auto* scatter = std::get_if<ScatterStage>(&stage.value)) return holds(scatter->axes);
  const auto* scan = std::get_if<ScanStage>(&stage.value);
  return scan != nullptr && scan->axis.node().get() == axis;
}

/// "split(i, factor=4)", as errors and notes name a step.
std::string text_of(const StepRecord& step) {
  std::string arguments;
  const auto add = [&](const std::string& argument) {
    arguments += (arguments.empty() ? "" : ", ") + argument;
  };
  for (const Axis& axis : step.axes)
    add(axis.name());
  if (step.factors.size() == 1) {
    add(fmt::format("factor={}", step.factors[0]));
  } else {
    for (const std::int64_t factor : step.factors)
      add(fmt::format("{}", factor));
  }
  if (step.parts) add(fmt::format("parts={}", *step.parts));
  if (!step.tag.empty()) add(step.tag);
  for (const std::string& tag : step.tags)
    add(tag);
  if (step.at_stage) add(step.at_stage->name);
  if (step.at_axis) add(step.at_axis->name());
  return fmt::format("{}({})", step.name, arguments);
}

/// "split into i.outer, i.inner at line 12", of the axes that a step uses up.
std::string fate_of(const StepRecord& step) {
  std::vector<std::string> made;
  for (const Axis& axis : step.defined)
    made.push_back(axis.name());
  return fmt::format("{} into {} at line {}", border::done_by(step.name), fmt::join(made, ", "),
                     step.line);
}

/// "axis x belongs to stage D, not to C".
std::string foreign(const ScheduleState& schedule, const Axis& axis, const StageNode& stage) {
  const AxisNode* node = axis.node().get();
  const auto made = schedule.owners.find(node);
  const auto found = made != schedule.owners.end()
                         ? schedule.stages.find(made->second)
                         : std::ranges::find_if(schedule.stages, [&](const auto* each) {
                             return owns(*each, node);
                           });
  const std::string owner = found != schedule.stages.end() ? fmt::format("stage {}", (*found)->name)
                                                           : "no stage of this schedule";
  return fmt::format("axis {} belongs to {}, not to {}", axis.name(), owner, stage.name);
}

/// The checks that need neither sizes nor a proof.
void check_axes(const ScheduleState& schedule, const StepRecord& step, const StageNode& stage,
                const std::vector<Axis>& axes, const SourceLocation& where) {
  // A dimension stays one, whatever became of its loop.
  const bool takes_consumed = border::is_of_dimensions(step.name);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const AxisNode* axis = axes[i].node().get();
    const auto owner = schedule.owners.find(axis);
    const bool own = owner != schedule.owners.end() ? owner->second == &stage : owns(stage, axis);
    if (!own) {
      fail_at(where, "FOREIGN_AXIS", "{}: {}", text_of(step), foreign(schedule, axes[i], stage));
    }
    const auto used = schedule.consumed.find({&stage, axis});
    if (used != schedule.consumed.end() && !takes_consumed) {
      fail_at(where, "AXIS_CONSUMED", "{}: axis {} was {}", text_of(step), axes[i].name(),
              used->second);
    }
    for (std::size_t j = 0; j < i && !takes_consumed; ++j) {
      if (axes[j].node() == axes[i].node()) {
        fail_at(where, "AXIS_TWICE", "{}: axis {} is named twice", text_of(step), axes[i].name());
      }
    }
  }
}

void check_factors(const StepRecord& step, const SourceLocation& where) {
  for (const std::int64_t factor : step.factors) {
    if (factor < 1) {
      fail_at(where, "SPLIT_FACTOR", "{}: the factor must be at least 1", text_of(step));
    }
  }
  if (step.parts && *step.parts < 1) {
    fail_at(where, "SPLIT_FACTOR", "{}: the parts must be at least 1", text_of(step));
  }
}

/// Checks the step, makes its axes, and records it.
std::vector<Axis> record(ScheduleState& schedule, StepRecord step, const SourceLocation& where) {
  const bool is_read = step.name == "prefetch";
  if (std::holds_alternative<PlaceholderStage>(step.stage->value) && !is_read) {
    fail_at(where, "STEP_ON_PLACEHOLDER",
            "{}: {} is a placeholder, so there is nothing to schedule", text_of(step),
            step.stage->name);
  }
  check_axes(schedule, step, *step.stage, step.axes, where);
  if (step.at_axis) check_axes(schedule, step, *step.at_stage, {*step.at_axis}, where);
  check_factors(step, where);
  step.file = where.file_name();
  step.line = where.line();
  return record_step(schedule, std::move(step));
}

}  // namespace

std::vector<Axis> record_step(ScheduleState& schedule, StepRecord step) {
  std::vector<std::string> names;
  for (const Axis& axis : step.axes)
    names.push_back(axis.name());
  for (std::string& name : border::defined_axis_names(step.name, names)) {
    // Refused here, since a name of a name grows faster than the steps that make it.
    if (name.size() > kLongestAxisName) {
      throw_error({.kind = ErrorKind::ResourceExhausted,
                   .reason = "LIMIT",
                   .message = fmt::format("an axis name has {} bytes; the limit is {}", name.size(),
                                          kLongestAxisName),
                   .file = step.file,
                   .line = static_cast<int>(step.line)});
    }
    Axis axis(std::make_shared<const AxisNode>(
        AxisNode{AxisKind::Derived, std::move(name), std::nullopt, std::nullopt}));
    schedule.owners[axis.node().get()] = step.stage.get();
    step.defined.push_back(std::move(axis));
  }
  if (!step.defined.empty()) {
    const std::string fate = fate_of(step);
    for (const Axis& axis : step.axes)
      schedule.consumed[{step.stage.get(), axis.node().get()}] = fate;
  }
  schedule.steps.push_back(std::move(step));
  return schedule.steps.back().defined;
}

std::unordered_set<const StageNode*> stages_of(const std::vector<Tensor>& tensors) {
  StagesBehind stages;
  for (const Tensor& tensor : tensors)
    stages.visit(tensor);
  return stages.take();
}

void PlainSteps::take(const char* step, const std::vector<Axis>& axes, std::int64_t value,
                      const Where& where) const {
  record(*schedule_, {.name = step, .stage = stage_, .axes = axes, .value = value}, where);
}

}  // namespace detail

std::pair<Axis, Axis> Stage::split(const Axis& axis, std::int64_t factor, Where where) const {
  const auto made = detail::record(
      *schedule_, {.name = "split", .stage = stage_, .axes = {axis}, .factors = {factor}}, where);
  return {made[0], made[1]};
}

std::pair<Axis, Axis> Stage::split_parts(const Axis& axis, std::int64_t parts, Where where) const {
  const auto made = detail::record(
      *schedule_, {.name = "split", .stage = stage_, .axes = {axis}, .parts = parts}, where);
  return {made[0], made[1]};
}

Axis Stage::fuse(const std::vector<Axis>& axes, Where where) const {
  if (axes.empty()) {
    detail::fail_at(where, "STEP_AXES", "fuse of {} needs at least one axis", stage_->name);
  }
  return detail::record(*schedule_, {.name = "fuse", .stage = stage_, .axes = axes}, where)[0];
}

std::array<Axis, 4> Stage::tile(const Axis& x, const Axis& y, std::int64_t x_factor,
                                std::int64_t y_factor, Where where) const {
  const auto made = detail::record(
      *schedule_,
      {.name = "tile", .stage = stage_, .axes = {x, y}, .factors = {x_factor, y_factor}}, where);
  return {made[0], made[1], made[2], made[3]};
}

void Stage::bind(const Axis& axis, const std::string& thread, Where where) const {
  const auto& tags = detail::kThreadTags;
  if (std::find(tags.begin(), tags.end(), std::string_view(thread)) == tags.end()) {
    detail::fail_at(where, "THREAD_TAG", "unknown thread axis {}; known: {}", thread,
                    fmt::join(tags, ", "));
  }
  detail::record(*schedule_, {.name = "bind", .stage = stage_, .axes = {axis}, .tag = thread},
                 where);
}

void Stage::compute_at(const Stage& consumer, const Axis& axis, Where where) const {
  detail::record(
      *schedule_,
      {.name = "compute_at", .stage = stage_, .at_stage = consumer.stage_, .at_axis = axis}, where);
}

void Stage::set_scope(const std::string& scope, Where where) const {
  detail::record_step(*schedule_, {.name = "set_scope",
                                   .stage = stage_,
                                   .tag = scope,
                                   .file = where.file_name(),
                                   .line = where.line()});
}

void Stage::storage_align(const Axis& axis, std::int64_t factor, std::int64_t offset,
                          Where where) const {
  detail::record(*schedule_,
                 {.name = "storage_align",
                  .stage = stage_,
                  .axes = {axis},
                  .factors = {factor},
                  .value = offset},
                 where);
}

void Stage::transform_layout(const std::vector<Axis>& axes,
                             const std::vector<std::int64_t>& factors, Where where) const {
  detail::record(*schedule_,
                 {.name = "transform_layout", .stage = stage_, .axes = axes, .factors = factors},
                 where);
}

void Stage::tensorize(const Axis& axis, const std::string& intrinsic, Where where) const {
  detail::record(*schedule_,
                 {.name = "tensorize", .stage = stage_, .axes = {axis}, .tag = intrinsic}, where);
}

void Stage::pragma(const Axis& axis, const std::string& kind, std::int64_t value,
                   Where where) const {
  detail::record(*schedule_,
                 {.name = "pragma", .stage = stage_, .axes = {axis}, .tag = kind, .value = value},
                 where);
}

void Stage::prefetch(const Tensor& tensor, const Axis& axis, std::int64_t offset,
                     Where where) const {
  detail::record(*schedule_,
                 {.name = "prefetch",
                  .stage = tensor.stage(),
                  .at_stage = stage_,
                  .at_axis = axis,
                  .output = tensor.output(),
                  .value = offset},
                 where);
}

void Stage::env_threads(const std::vector<std::string>& threads, Where where) const {
  detail::record(*schedule_, {.name = "env_threads", .stage = stage_, .tags = threads}, where);
}

Stage Schedule::operator[](const detail::TensorHere& tensor) const {
  const auto& stage = tensor.tensor.stage();
  if (!state_->stages.contains(stage.get())) {
    detail::fail_at(tensor.where, "FOREIGN_STAGE",
                    "{} is not a stage of this schedule: none of its outputs is computed from it",
                    tensor.tensor.name());
  }
  return Stage(state_, stage);
}

Schedule create_schedule(const std::vector<Tensor>& outputs) {
  auto state = std::make_shared<detail::ScheduleState>();
  state->outputs = outputs;
  state->stages = detail::stages_of(outputs);
  return Schedule(std::move(state));
}

Schedule create_schedule(const Tensor& output) {
  return create_schedule(std::vector<Tensor>{output});
}

}  // namespace client
}  // namespace kiln
