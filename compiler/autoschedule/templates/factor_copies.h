#pragma once

#include "compiler/autoschedule/templates/matrix_tile.h"

namespace kiln::autoschedule {

/// What blocks fetch of a factor: itself, or a copy.
struct FetchedFactor {
  language::TensorId tensor;
  StageId reader = 0;          // the product, or what is inline in it
  size_t row_dimension = 0;    // of the tensor, from its last one backwards
  language::TensorId as_read;  // by the product: the tensor, or what is inline
};

/// Writes the copy that the tile has of a factor, if it has one, as a launch of its own.
FetchedFactor fetched_factor(const StageGraph& graph, const MatrixTile& tile, bool is_of_rows,
                             StepWriter& steps);

}  // namespace kiln::autoschedule
