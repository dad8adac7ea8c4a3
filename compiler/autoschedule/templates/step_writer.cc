#include "compiler/autoschedule/templates/step_writer.h"

#include <algorithm>

#include "runtime/core/error.h"

namespace kiln::autoschedule {

using language::Step;
using language::StepKind;

namespace {

/// The id by which steps call a position of the graph: the last, since what a step has taken over
/// is its own. Behind all `positions` come those that have no place in the graph yet.
uint32_t id_of(const std::vector<uint32_t>& ids, size_t positions, uint32_t position) {
  if (position >= positions) return static_cast<uint32_t>(position - positions + ids.size());
  const auto found = std::find(ids.rbegin(), ids.rend(), position);
  KILN_CHECK(found != ids.rend());
  return static_cast<uint32_t>(ids.rend() - found - 1);
}

}  // namespace

StepWriter::StepWriter(language::Schedule schedule, const schedule::StageGraph& graph)
    : schedule_(std::move(schedule)),
      graph_(graph),
      next_stage_(static_cast<StageId>(graph.stages.size())),
      next_axis_(static_cast<AxisId>(graph.axes.size())) {}

language::StageId StepWriter::id_of_stage(StageId stage) const {
  return id_of(graph_.stage_of_id, graph_.stages.size(), stage);
}
language::AxisId StepWriter::id_of_axis(AxisId axis) const {
  return id_of(graph_.axis_of_id, graph_.axes.size(), axis);
}

Step& StepWriter::add(StepKind kind, StageId stage, const std::vector<AxisId>& axes) {
  Step step{.kind = kind, .stage = id_of_stage(stage)};
  for (const AxisId axis : axes)
    step.axes.push_back(id_of_axis(axis));
  schedule_.steps.push_back(std::move(step));
  return schedule_.steps.back();
}

std::pair<AxisId, AxisId> StepWriter::split(StageId stage, AxisId axis, int64_t factor) {
  add(StepKind::Split, stage, {axis}).factors = {factor};
  next_axis_ += 2;
  return {next_axis_ - 2, next_axis_ - 1};
}

AxisId StepWriter::fuse(StageId stage, const std::vector<AxisId>& axes) {
  if (axes.size() == 1) return axes[0];
  add(StepKind::Fuse, stage, axes);
  return next_axis_++;
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
void StepWriter::storage_align(StageId stage, AxisId axis, int64_t factor) {
  add(StepKind::StorageAlign, stage, {axis}).factors = {factor};
}

std::pair<StageId, std::vector<AxisId>> StepWriter::cache_read(language::TensorId tensor,
                                                               size_t dimensions, StageId reader) {
  const auto copy = copy_for(StepKind::CacheRead, tensor, dimensions, reader);
  schedule_.steps.back().tag = "global";
  return copy;
}

std::pair<StageId, std::vector<AxisId>> StepWriter::cache_padded(language::TensorId tensor,
                                                                 size_t dimensions,
                                                                 StageId reader) {
  return copy_for(StepKind::CachePadded, tensor, dimensions, reader);
}

std::pair<StageId, std::vector<AxisId>> StepWriter::copy_for(StepKind kind,
                                                             language::TensorId tensor,
                                                             size_t dimensions, StageId reader) {
  Step& step = add(kind, tensor.stage, {});
  step.output = tensor.output;
  step.readers = {id_of_stage(reader)};
  std::vector<AxisId> axes;
  for (size_t d = 0; d < dimensions; ++d)
    axes.push_back(next_axis_++);
  return {next_stage_++, axes};
}

std::pair<StageId, std::vector<AxisId>> StepWriter::cache_read(language::TensorId tensor,
                                                               StageId reader,
                                                               const std::vector<AxisId>& layout) {
  const auto copy = cache_read(tensor, layout.size(), reader);
  for (const AxisId loop : layout)
    schedule_.steps.back().axes.push_back(id_of_axis(loop));
  return copy;
}

std::pair<StageId, std::vector<AxisId>> StepWriter::cache_write(StageId stage,
                                                                std::string_view scope,
                                                                size_t axes) {
  add(StepKind::CacheWrite, stage, {}).tag = scope;
  std::vector<AxisId> made;
  for (size_t i = 0; i < axes; ++i)
    made.push_back(next_axis_++);
  return {next_stage_++, made};
}

void StepWriter::compute_at(StageId stage, StageId consumer, AxisId axis) {
  Step& step = add(StepKind::ComputeAt, stage, {});
  step.at_stage = id_of_stage(consumer);
  step.at_axis = id_of_axis(axis);
}
void StepWriter::compute_inline(StageId stage) { add(StepKind::ComputeInline, stage, {}); }

}  // namespace kiln::autoschedule
