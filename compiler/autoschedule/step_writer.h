#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "compiler/language/definition.h"
#include "compiler/language/step.h"

namespace kiln::autoschedule {

using language::AxisId;
using language::StageId;

/// Appends steps to a schedule and hands out the ids of the axes they define.
class StepWriter {
 public:
  /// `next_stage`, `next_axis`: the first ids that no stage and no axis has yet, after the steps so
  /// far.
  StepWriter(language::Schedule schedule, StageId next_stage, AxisId next_axis);

  std::pair<AxisId, AxisId> split(StageId stage, AxisId axis, int64_t factor);
  /// One axis is returned as it is, without a step.
  AxisId fuse(StageId stage, const std::vector<AxisId>& axes);
  void reorder(StageId stage, const std::vector<AxisId>& axes);
  void parallel(StageId stage, AxisId axis);
  void vectorize(StageId stage, AxisId axis);
  void unroll(StageId stage, AxisId axis);
  void bind(StageId stage, AxisId axis, std::string_view thread);
  /// A copy of a tensor that `reader` reads instead of it, and the copy's axes.
  std::pair<StageId, std::vector<AxisId>> cache_read(language::TensorId tensor, size_t dimensions,
                                                     StageId reader);
  /// A stage in local memory that computes the elements, of which `stage` becomes a copy, and the
  /// new stage's axes. The stage reduces nothing and has no steps yet.
  std::pair<StageId, std::vector<AxisId>> cache_write(StageId stage, size_t dimensions);
  void compute_at(StageId stage, StageId consumer, AxisId axis);
  void compute_inline(StageId stage);

  language::Schedule schedule() && { return std::move(schedule_); }

 private:
  language::Step& add(language::StepKind kind, StageId stage, std::vector<AxisId> axes);

  language::Schedule schedule_;
  StageId next_stage_;
  AxisId next_axis_;
};

}  // namespace kiln::autoschedule
