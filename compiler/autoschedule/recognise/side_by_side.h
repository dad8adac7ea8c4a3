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

/// The axis that an index of a read is, if it is one of these and nothing else.
std::optional<AxisId> axis_of(const StageGraph& graph, const std::vector<AxisId>& axes,
                              const ir::Expr& index);

/// The data axes of a stage but time, then those that it reduces over.
std::vector<AxisId> axes_of(const StageGraph& graph, StageId stage);

/// Whether factors that are apart can be copied.
bool may_have_vectors(const StageGraph& graph, const SideBySide& product);

/// Whether a stage is a product: a contraction, or products that lie side by side.
bool is_product(const StageGraph& graph, StageId stage);

}  // namespace kiln::autoschedule
