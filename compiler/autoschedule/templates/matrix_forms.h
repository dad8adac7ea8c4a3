#pragma once

#include <vector>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/templates/matrix_tile.h"

namespace kiln::autoschedule {

/// The tiles that a stage may have, of no size yet: none where tensor cores do not compute it.
std::vector<MatrixTile> matrix_forms(const Chooser& chooser, StageId stage,
                                     const std::vector<StageId>& prologues);

/// The stages in front of the factors that they may compute.
std::vector<StageId> prologues_of_matrix_tiles(const Chooser& chooser, StageId stage);

/// Elements of both factors that a thread fetches at once.
int64_t fetched_at_once(const StageGraph& graph, const MatrixTile& tile);

/// Whether a thread fetches several elements of both factors at once: words at least, which
/// hardware copies in the background, too.
bool are_fetched_side_by_side(const StageGraph& graph, const MatrixTile& tile);

}  // namespace kiln::autoschedule
