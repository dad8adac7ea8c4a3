#pragma once

#include <vector>

#include "compiler/schedule/stage_graph.h"
#include "compiler/target.h"

namespace kiln::autoschedule {

/// A schedule, and stages that it names without saying how they run: they are scheduled all the
/// same.
struct OpenSchedule {
  language::Schedule schedule;
  std::vector<schedule::StageId> open;
};

/// The stages of a kernel after the steps so far, the open ones as if no step named them.
schedule::StageGraph graph_of(const language::Kernel& kernel, const OpenSchedule& given);

/// Has large products that lie side by side computed one after the other, as products are:
///
///   C[i, j, b] = sum[k](A[b, i, k] * B[b, k, j])
///
/// is computed for each b in the order [b, i, j], and C is a copy that turns it. Small ones stay as
/// they are: vectors along b have all of their factors in the nearest caches.
OpenSchedule with_turned_products(const language::Kernel& kernel, language::Schedule given,
                                  const Target& target, const CompileOptions& options);

}  // namespace kiln::autoschedule
