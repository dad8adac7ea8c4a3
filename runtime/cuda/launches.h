#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/cuda/driver_objects.h"

namespace kiln::cuda {

/// All that a call gives a kernel: its variant, and the values of its parameters in order.
struct CallValues {
  int variant = 0;
  std::vector<void*> tensors;
  std::vector<int64_t> scalars;
  void* workspace = nullptr;
  void* fault = nullptr;
  int64_t iteration = 0;  // of a loop over launches
  bool operator==(const CallValues&) const = default;

  /// Where each parameter lies, as a launch takes them; while this lives and stays as it is.
  std::vector<void*> addresses();
};

/// Launches that may come again: what the calls were given, and one graph of all once they came
/// twice.
struct Launches {
  std::vector<CallValues> values;  // of each call
  std::unique_ptr<Graph> graph;
};

}  // namespace kiln::cuda
