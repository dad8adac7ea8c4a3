#pragma once

#include "compiler/autoschedule/recognise/structure.h"

namespace kiln::autoschedule {

/// Products that lie side by side: C[.., b] = sum(A[.., b, ..] * B[.., b, ..]), a row of A's and a
/// column of B's for each element.
struct SideBySide {
  /// One of the factors, and the axis that it alone has.
  struct Factor {
    const ir::TensorRead* read = nullptr;
    AxisId own = 0;
    bool is_apart = false;  // neighbours along the batch are no neighbours in memory
  };
  StageId stage = 0;
  AxisId batch = 0;
  Factor rows;
  Factor columns;
  std::vector<AxisId> outer;  // the other data axes
};

/// Nothing unless the stage sums such products alone. Whether a copy of its factors pays is not
/// asked.
std::optional<SideBySide> find_side_by_side(const StageGraph& graph, StageId stage);

}  // namespace kiln::autoschedule
