#pragma once

#include <optional>

#include "compiler/autoschedule/templates/sketch.h"
#include "compiler/autoschedule/templates/stage_schedules.h"

namespace kiln::autoschedule {

/// Whether what a reduction reads is in L3 where it was read before, as weights of a step are.
bool is_in_l3(const Chooser& chooser, StageId id);

/// Whether the rows that a reduction adds up follow each other in memory, each within two pages of
/// the one before.
bool has_rows_side_by_side(const StageGraph& graph, StageId id);

/// Along which axis of a reduction the vectors lie.
struct ReductionVectors {
  AxisId axis = 0;
  int64_t lanes = 0;
  bool along_data = false;  // which keeps the order of the reduction
  int64_t columns = 0;      // of a block whose sums stay in L1; 0: in registers
};

/// Nothing where there are none.
std::optional<ReductionVectors> vectors_of_reduction(const Chooser& chooser, StageId id,
                                                     bool is_shared);

/// "rows at once" whose columns are added up in blocks.
Parameter rows_down_parameter(const Chooser& chooser, StageId id);

/// "rows at once" that are added up along the vectors, shared by so many tasks; nothing where a
/// vector or a group of rows would not be full, whose lanes would be added in another order.
std::optional<Parameter> rows_along_parameter(const Chooser& chooser, StageId id,
                                              const ReductionVectors& vectors, int64_t tasks);

}  // namespace kiln::autoschedule
