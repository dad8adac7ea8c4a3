#include "compiler/autoschedule/step_writer.h"

namespace kiln::autoschedule {

using language::Step;
using language::StepKind;

namespace {

AxisId count_defined(const Step& step) {
  const std::vector<std::string> operands(step.axes.size());
  return static_cast<AxisId>(language::defined_axis_names(step.kind, operands).size());
}

}  // namespace

StepWriter::StepWriter(language::Schedule schedule, StageId next_stage, AxisId next_axis)
    : schedule_(std::move(schedule)), next_stage_(next_stage), next_axis_(next_axis) {}

Step& StepWriter::add(StepKind kind, StageId stage, std::vector<AxisId> axes) {
  Step step{.kind = kind, .stage = stage, .axes = std::move(axes)};
  next_axis_ += count_defined(step);
  schedule_.steps.push_back(std::move(step));
  return schedule_.steps.back();
}

std::pair<AxisId, AxisId> StepWriter::split(StageId stage, AxisId axis, int64_t factor) {
  add(StepKind::Split, stage, {axis}).factors = {factor};
  return {next_axis_ - 2, next_axis_ - 1};
}

AxisId StepWriter::fuse(StageId stage, const std::vector<AxisId>& axes) {
  if (axes.size() == 1) return axes[0];
  add(StepKind::Fuse, stage, axes);
  return next_axis_ - 1;
}

void StepWriter::reorder(StageId stage, const std::vector<AxisId>& axes) {
  add(StepKind::Reorder, stage, axes);
}
void StepWriter::parallel(StageId stage, AxisId axis) { add(StepKind::Parallel, stage, {axis}); }
void StepWriter::vectorize(StageId stage, AxisId axis) { add(StepKind::Vectorize, stage, {axis}); }
void StepWriter::unroll(StageId stage, AxisId axis) { add(StepKind::Unroll, stage, {axis}); }
void StepWriter::bind(StageId stage, AxisId axis, std::string_view thread) {
  add(StepKind::Bind, stage, {axis}).tag = thread;
}

std::pair<StageId, std::vector<AxisId>> StepWriter::cache_read(language::TensorId tensor,
                                                               size_t dimensions, StageId reader) {
  Step step{.kind = StepKind::CacheRead, .stage = tensor.stage};
  step.tag = "global";
  step.output = tensor.output;
  step.readers = {reader};
  schedule_.steps.push_back(std::move(step));
  std::vector<AxisId> axes;
  for (size_t d = 0; d < dimensions; ++d)
    axes.push_back(next_axis_++);
  return {next_stage_++, axes};
}

std::pair<StageId, std::vector<AxisId>> StepWriter::cache_write(StageId stage, size_t dimensions) {
  Step step{.kind = StepKind::CacheWrite, .stage = stage};
  step.tag = "local";
  schedule_.steps.push_back(std::move(step));
  std::vector<AxisId> axes;
  for (size_t d = 0; d < dimensions; ++d)
    axes.push_back(next_axis_++);
  return {next_stage_++, axes};
}

void StepWriter::compute_at(StageId stage, StageId consumer, AxisId axis) {
  Step& step = add(StepKind::ComputeAt, stage, {});
  step.at_stage = consumer;
  step.at_axis = axis;
}
void StepWriter::compute_inline(StageId stage) { add(StepKind::ComputeInline, stage, {}); }

}  // namespace kiln::autoschedule
