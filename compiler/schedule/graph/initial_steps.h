#pragma once

#include "compiler/schedule/graph/stage_graph.h"

namespace kiln::schedule {

/// Leaves the initial steps of a scan out of stages that its cell alone reads, each at its own
/// step, where these steps could do what others do not: read outside of a tensor.
///
///   P[t, i] = X[t - 1, i] * 2               (t < m, X of m - 1 rows)
///   S[t, i] = S[t - 1, i] + P[t, i]         (t >= 1)
///     ->
///   P[t, i] = X[t, i] * 2                   (t < m - 1)
///   S[t, i] = S[t - 1, i] + P[t - 1, i]
///
/// A stage of the cell itself is never computed at them anyway.
void drop_initial_steps(StageGraph& graph);

}  // namespace kiln::schedule
