#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compiler/codegen/cpu_code.h"
#include "runtime/core/artifact.h"
#include "tests/support/tensors.h"

namespace kiln::testing {

/// What came of a call of code that a sanitizer's pass went over.
struct WatchedRun {
  std::vector<HostTensor> outputs;
  /// Empty, or the first access that is a mistake: outside of what the call was given, a write to
  /// an input, memory of another thread, or one of two iterations of a parallel loop that meet in a
  /// byte which one of them writes. The call ends there.
  std::string mistake;
  int64_t accesses = 0;
  int64_t parallel_iterations = 0;
};

/// Runs an artifact whose code has the calls of a Sanitizer, its first variant. Every iteration of
/// a parallel loop is a part of its own, so that a race shows whichever threads would have met.
/// `tensors` has one for each parameter. Throws as Device::run() when a check fires.
WatchedRun run_watched(const Artifact& artifact, const std::vector<HostTensor>& tensors,
                       const std::map<std::string, int64_t>& sizes = {});

}  // namespace kiln::testing
