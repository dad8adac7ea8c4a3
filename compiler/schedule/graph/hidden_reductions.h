#pragma once

#include "compiler/schedule/graph/stage_graph.h"

namespace kiln::schedule {

/// Gives each reduction that stands inside a larger expression a stage of its own, over the axes
/// that it uses.
///
///   C[i, j] = exp(X[i, j]) / sum[k < n](exp(X[i, k]))
///     ->
///   C.sum[i] = sum[k < n](exp(X[i, k]))
///   C[i, j] = exp(X[i, j]) / C.sum[i]
///
/// After it a body is free of reductions, or is one. Throws InvalidArgument REDUCTION_PLACE where
/// the extent of an axis that the reduction uses depends on another axis.
void take_out_reductions(StageGraph& graph);

}  // namespace kiln::schedule
