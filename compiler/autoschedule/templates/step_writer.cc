// Applies each step to a schedule state of its own, which says what ids the step makes. Sketches
// speak in positions of the graph, which stays as it is, so ids are translated both ways.
#include "compiler/autoschedule/templates/step_writer.h"

#include <algorithm>

#include "compiler/language/tables/hints.h"
#include "compiler/schedule/graph/reads.h"
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

bool contains(const std::vector<StageId>& stages, StageId stage) {
  return std::ranges::find(stages, stage) != stages.end();
}

/// Adds the stages whose expressions name the tensor where `reader` reads it: itself, and what is
/// inline in it.
void add_who_names(const schedule::StageGraph& graph, StageId reader, language::TensorId tensor,
                   std::vector<StageId>& names) {
  for (const language::TensorId input : schedule::direct_inputs(graph, graph[reader])) {
    if (input == tensor && !contains(names, reader)) names.push_back(reader);
    if (graph[input.stage].attach.kind == schedule::Attach::Kind::Inline)
      add_who_names(graph, input.stage, tensor, names);
  }
}

}  // namespace

StepWriter::StepWriter(language::Schedule schedule, const schedule::StageGraph& graph)
    : schedule_(std::move(schedule)), graph_(graph), state_(graph.state) {}

language::StageId StepWriter::id_of_stage(StageId stage) const {
  return id_of(graph_.stage_of_id, graph_.stages.size(), stage);
}
language::AxisId StepWriter::id_of_axis(AxisId axis) const {
  return id_of(graph_.axis_of_id, graph_.axes.size(), axis);
}

Step StepWriter::step(StepKind kind, StageId stage, const std::vector<AxisId>& axes) const {
  Step step{.kind = kind, .stage = id_of_stage(stage)};
  for (const AxisId axis : axes)
    step.axes.push_back(id_of_axis(axis));
  return step;
}

std::vector<AxisId> StepWriter::add(Step step) {
  const size_t before = state_.axes().size();
  state_.apply(step);
  schedule_.steps.push_back(std::move(step));
  std::vector<AxisId> made;
  for (size_t id = before; id < state_.axes().size(); ++id)
    made.push_back(static_cast<AxisId>(id - graph_.axis_of_id.size() + graph_.axes.size()));
  return made;
}

std::pair<StageId, std::vector<AxisId>> StepWriter::add_stage(Step step) {
  const size_t stage = state_.stages().size() - graph_.stage_of_id.size() + graph_.stages.size();
  return {static_cast<StageId>(stage), add(std::move(step))};
}

std::pair<AxisId, AxisId> StepWriter::split(StageId stage, AxisId axis, int64_t factor) {
  Step split = step(StepKind::Split, stage, {axis});
  split.factors = {factor};
  const std::vector<AxisId> made = add(std::move(split));
  return {made[0], made[1]};
}

AxisId StepWriter::fuse(StageId stage, const std::vector<AxisId>& axes) {
  if (axes.size() == 1) return axes[0];
  return add(step(StepKind::Fuse, stage, axes))[0];
}

AxisId StepWriter::fuse_vectors(StageId stage, std::vector<AxisId> axes, int64_t lanes) {
  if (lanes > 1) {
    const auto [vectors, lane] = split(stage, axes.back(), lanes);
    vectorize(stage, lane);
    axes.back() = vectors;
  }
  return fuse(stage, axes);
}

void StepWriter::reorder(StageId stage, const std::vector<AxisId>& axes) {
  add(step(StepKind::Reorder, stage, axes));
}
void StepWriter::parallel(StageId stage, AxisId axis) {
  add(step(StepKind::Parallel, stage, {axis}));
}
void StepWriter::vectorize(StageId stage, AxisId axis) {
  add(step(StepKind::Vectorize, stage, {axis}));
}
void StepWriter::unroll(StageId stage, AxisId axis) { add(step(StepKind::Unroll, stage, {axis})); }
void StepWriter::bind(StageId stage, AxisId axis, std::string_view thread) {
  Step bind = step(StepKind::Bind, stage, {axis});
  bind.tag = thread;
  add(std::move(bind));
}
void StepWriter::add_pragma(StageId stage, language::PragmaKind kind, int64_t value) {
  Step pragma = step(StepKind::Pragma, stage, {});
  pragma.axes = {state_.stage(id_of_stage(stage)).loops.leaves.at(0)};
  pragma.tag = language::row_of(kind).spelling;
  pragma.value = value;
  add(std::move(pragma));
}
void StepWriter::tile_block(StageId stage, const TileBlock& block) {
  using language::PragmaKind;
  if (block.rows) add_pragma(stage, PragmaKind::TileRows, *block.rows);
  if (block.columns) add_pragma(stage, PragmaKind::TileColumns, *block.columns);
  if (block.steps) add_pragma(stage, PragmaKind::TileSteps, *block.steps);
  if (block.warps) add_pragma(stage, PragmaKind::TileWarps, *block.warps);
}
void StepWriter::thread_block(StageId stage, int64_t queries, int64_t keys) {
  add_pragma(stage, language::PragmaKind::AttentionQueries, queries);
  add_pragma(stage, language::PragmaKind::AttentionKeys, keys);
}

void StepWriter::pragma(StageId stage, AxisId axis, std::string_view name, int64_t value) {
  Step pragma = step(StepKind::Pragma, stage, {axis});
  pragma.tag = name;
  pragma.value = value;
  add(std::move(pragma));
}
void StepWriter::storage_align(StageId stage, AxisId axis, int64_t factor, int64_t offset) {
  Step align = step(StepKind::StorageAlign, stage, {axis});
  align.factors = {factor};
  align.value = offset;
  add(std::move(align));
}

void StepWriter::storage_swizzle(StageId stage, int64_t every) {
  Step swizzle = step(StepKind::StorageSwizzle, stage, {});
  swizzle.value = every;
  add(std::move(swizzle));
}

void StepWriter::double_buffer(StageId stage) { add(step(StepKind::DoubleBuffer, stage, {})); }

void StepWriter::software_pipeline(StageId stage, AxisId axis, int64_t stages) {
  Step pipeline = step(StepKind::SoftwarePipeline, stage, {axis});
  pipeline.value = stages;
  add(std::move(pipeline));
}

void StepWriter::prefetch(language::TensorId tensor, StageId reader, AxisId axis, int64_t ahead) {
  Step fetch = step(StepKind::Prefetch, tensor.stage, {});
  fetch.output = tensor.output;
  fetch.at_stage = id_of_stage(reader);
  fetch.at_axis = id_of_axis(axis);
  fetch.value = ahead;
  add(std::move(fetch));
}

std::pair<StageId, std::vector<AxisId>> StepWriter::cache_read(language::TensorId tensor,
                                                               const std::vector<StageId>& readers,
                                                               std::string_view scope) {
  Step copy = step(StepKind::CacheRead, tensor.stage, {});
  copy.output = tensor.output;
  std::vector<StageId> names;
  for (const StageId reader : readers) {
    const size_t before = names.size();
    add_who_names(graph_, reader, tensor, names);
    if (names.size() == before && !contains(names, reader)) names.push_back(reader);
  }
  for (const StageId name : names)
    copy.readers.push_back(id_of_stage(name));
  copy.tag = scope;
  return add_stage(std::move(copy));
}

std::pair<StageId, std::vector<AxisId>> StepWriter::cache_read(language::TensorId tensor,
                                                               StageId reader,
                                                               const std::vector<AxisId>& layout,
                                                               std::string_view scope) {
  Step copy = step(StepKind::CacheRead, tensor.stage, layout);
  copy.output = tensor.output;
  copy.readers = {id_of_stage(reader)};
  copy.tag = scope;
  return add_stage(std::move(copy));
}

std::pair<StageId, std::vector<AxisId>> StepWriter::cache_padded(language::TensorId tensor,
                                                                 StageId reader) {
  Step copy = step(StepKind::CachePadded, tensor.stage, {});
  copy.output = tensor.output;
  copy.readers = {id_of_stage(reader)};
  return add_stage(std::move(copy));
}

std::pair<StageId, std::vector<AxisId>> StepWriter::cache_write(StageId stage,
                                                                std::string_view scope) {
  Step copy = step(StepKind::CacheWrite, stage, {});
  copy.tag = scope;
  return add_stage(std::move(copy));
}

std::pair<StageId, std::vector<AxisId>> StepWriter::rfactor(StageId stage, AxisId axis,
                                                            size_t place) {
  Step factor = step(StepKind::Rfactor, stage, {axis});
  factor.value = static_cast<int64_t>(place);
  return add_stage(std::move(factor));
}

void StepWriter::set_scope(StageId stage, std::string_view scope) {
  Step set = step(StepKind::SetScope, stage, {});
  set.tag = scope;
  add(std::move(set));
}

void StepWriter::compute_at(StageId stage, StageId consumer, AxisId axis) {
  Step attach = step(StepKind::ComputeAt, stage, {});
  attach.at_stage = id_of_stage(consumer);
  attach.at_axis = id_of_axis(axis);
  add(std::move(attach));
}
void StepWriter::compute_inline(StageId stage) { add(step(StepKind::ComputeInline, stage, {})); }

}  // namespace kiln::autoschedule
