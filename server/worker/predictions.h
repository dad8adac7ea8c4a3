#pragma once

#include "kiln/internal/worker.pb.h"

namespace kiln::server {

/// What the automatic schedules of a request are predicted to take: the one that is taken
/// unmeasured, and the quickest of the others. Throws Unsupported PREDICT_TARGET for a target whose
/// time is not predicted. `has_tiles`: whether code is made of tiles here;
/// `threads`: of kernels here, for a task that names none.
v1::PredictResponse predictions_of(const internal::Predict& task, bool has_tiles, int threads);

}  // namespace kiln::server
