#pragma once

#include "kiln/internal/worker.pb.h"

namespace kiln::server {

/// What the automatic schedules of a request are predicted to take: the one that is taken
/// unmeasured, and the quickest of the others. Throws Unsupported PREDICT_TARGET for a target whose
/// time is not predicted. `has_tiles`: whether code is made of tiles here;
/// `threads`: of kernels here, for a task that names none. Where the speed of this host counts and
/// the task does not say it, it is measured and said.
void predict_task(const internal::Predict& task, internal::Predicted& predicted, bool has_tiles,
                  int threads);

}  // namespace kiln::server
