#pragma once

#include <vector>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/templates/matrix_tile.h"

namespace kiln::autoschedule {

/// The tiles that a stage may have, of no size yet: none where tensor cores do not compute it.
std::vector<MatrixTile> matrix_forms(const Chooser& chooser, StageId stage);

/// Elements of both factors that a thread fetches at once.
int64_t fetched_at_once(const StageGraph& graph, const MatrixTile& tile);

/// Whether a thread fetches several elements of both factors at once: words at least, which
/// hardware copies in the background, too.
bool are_fetched_side_by_side(const StageGraph& graph, const MatrixTile& tile);

}  // namespace kiln::autoschedule
