#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "compiler/language/tables/hints.h"
#include "compiler/language/tables/step.h"
#include "compiler/schedule/graph/stage_graph.h"
#include "compiler/target.h"

namespace kiln::autoschedule {

using schedule::AxisId;
using schedule::StageId;

/// Appends steps to a schedule. Stages and axes are named by their positions in the graph; those
/// that a step here makes follow after all of its positions.
class StepWriter {
 public:
  /// `graph`: what the steps so far have made. A step that the language refuses throws.
  StepWriter(language::Schedule schedule, const schedule::StageGraph& graph);

  std::pair<AxisId, AxisId> split(StageId stage, AxisId axis, int64_t factor);
  /// One axis is returned as it is, without a step.
  AxisId fuse(StageId stage, const std::vector<AxisId>& axes);
  /// One loop over all of the axes, whose iterations are vectors of `lanes` neighbours along the
  /// last one.
  AxisId fuse_vectors(StageId stage, std::vector<AxisId> axes, int64_t lanes);
  void reorder(StageId stage, const std::vector<AxisId>& axes);
  void parallel(StageId stage, AxisId axis);
  void vectorize(StageId stage, AxisId axis);
  void unroll(StageId stage, AxisId axis);
  void bind(StageId stage, AxisId axis, std::string_view thread);
  /// A wish about the loops from the axis inwards, of the table of pragmas.
  void pragma(StageId stage, AxisId axis, std::string_view name, int64_t value);
  /// What a block of code made of tiles has, as pragmas of the stage's outermost loop.
  void tile_block(StageId stage, const TileBlock& block);
  /// What a block of threads has of an attention, likewise.
  void thread_block(StageId stage, int64_t queries, int64_t keys);
  /// Neighbours along the axis begin at multiples of so many elements, and `offset` more for each.
  void storage_align(StageId stage, AxisId axis, int64_t factor, int64_t offset = 0);
  void storage_swizzle(StageId stage, int64_t every);
  /// The stage's memory exists twice, for iterations that take turns.
  void double_buffer(StageId stage);
  /// What is computed at the axis is fetched one iteration early.
  void software_pipeline(StageId stage, AxisId axis, int64_t stages = 2);
  /// Each iteration of a loop of the reader fetches what the one so many later reads of the tensor.
  void prefetch(language::TensorId tensor, StageId reader, AxisId axis, int64_t ahead);
  /// A copy of a tensor that the readers, and what is inline in them, read instead of it, and the
  /// copy's axes.
  std::pair<StageId, std::vector<AxisId>> cache_read(language::TensorId tensor,
                                                     const std::vector<StageId>& readers,
                                                     std::string_view scope);
  /// The same for one reader: with a layout, the axes are these loops of the reader in this order.
  std::pair<StageId, std::vector<AxisId>> cache_read(language::TensorId tensor, StageId reader,
                                                     const std::vector<AxisId>& layout,
                                                     std::string_view scope = "global");
  /// A copy with what the reader puts around the tensor, and the copy's axes.
  std::pair<StageId, std::vector<AxisId>> cache_padded(language::TensorId tensor, StageId reader);
  /// A stage in a memory scope that computes the elements, of which `stage` becomes a copy, and the
  /// new stage's axes: one for each loop of the stage over data, then one for each reduction axis.
  std::pair<StageId, std::vector<AxisId>> cache_write(StageId stage, std::string_view scope);
  /// A stage of partial results along a reduction loop, which is its dimension at `place`, and its
  /// axes: those of its data, then of its reduction, and last the one along which `stage` reduces
  /// then.
  std::pair<StageId, std::vector<AxisId>> rfactor(StageId stage, AxisId axis, size_t place = 0);
  /// Where the stage's values lie.
  void set_scope(StageId stage, std::string_view scope);
  void compute_at(StageId stage, StageId consumer, AxisId axis);
  void compute_inline(StageId stage);

  /// The loops over tiles that the steps so far have made of another stage's data axes, of `axes`
  /// of this stage, which stand for those in this order. False, and no step, where these are not
  /// all outside of what it reduces, or more than splits of axes made them.
  bool follow(StageId stage, const std::vector<AxisId>& axes, StageId leader,
              const std::vector<AxisId>& leader_axes);

  language::Schedule schedule() && { return std::move(schedule_); }

 private:
  /// A pragma of the stage's outermost loop.
  void add_pragma(StageId stage, language::PragmaKind kind, int64_t value);
  /// A step about the stage and these axes of it, or of another one.
  language::Step step(language::StepKind kind, StageId stage,
                      const std::vector<AxisId>& axes) const;
  /// Takes the step; the axes that it makes.
  std::vector<AxisId> add(language::Step step);
  /// The same of one that makes a stage.
  std::pair<StageId, std::vector<AxisId>> add_stage(language::Step step);
  language::StageId id_of_stage(StageId stage) const;
  language::AxisId id_of_axis(AxisId axis) const;

  language::Schedule schedule_;
  const schedule::StageGraph& graph_;
  language::ScheduleState state_;
};

}  // namespace kiln::autoschedule
