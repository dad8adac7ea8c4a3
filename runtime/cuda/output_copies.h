#pragma once

#include <deque>
#include <vector>

#include "runtime/cuda/device_work.h"
#include "runtime/overlap.h"

namespace kiln::cuda {

/// Memory for the outputs of a call that share theirs with an input.
class OutputCopies {
 public:
  /// Throws InvalidArgument ARGUMENT_OVERLAP when two outputs share memory, and DEVICE_MEMORY.
  OutputCopies(DeviceWork& work, const Artifact& artifact, const KernelCall& call);

  /// What the call is to work on.
  std::span<void* const> tensors() const { return tensors_; }
  /// Copies the outputs into their places, once the call has ended.
  void commit();

 private:
  DeviceWork& work_;
  const std::vector<SharedOutput> shared_;
  std::deque<Memory> memory_;  // of each of these
  std::vector<void*> tensors_;
};

}  // namespace kiln::cuda
