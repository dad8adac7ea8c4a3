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
  /// `next_axis`: the first id that no axis has yet, after the steps so far.
  StepWriter(language::Schedule schedule, AxisId next_axis);

  std::pair<AxisId, AxisId> split(StageId stage, AxisId axis, int64_t factor);
  /// One axis is returned as it is, without a step.
  AxisId fuse(StageId stage, const std::vector<AxisId>& axes);
  void reorder(StageId stage, const std::vector<AxisId>& axes);
  void parallel(StageId stage, AxisId axis);
  void vectorize(StageId stage, AxisId axis);
  void unroll(StageId stage, AxisId axis);
  void bind(StageId stage, AxisId axis, std::string_view thread);

  language::Schedule schedule() && { return std::move(schedule_); }

 private:
  language::Step& add(language::StepKind kind, StageId stage, std::vector<AxisId> axes);

  language::Schedule schedule_;
  AxisId next_axis_;
};

}  // namespace kiln::autoschedule
