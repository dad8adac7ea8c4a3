#pragma once

#include <vector>

#include "runtime/cpu/workspace.h"
#include "runtime/device.h"

namespace kiln {

/// Generated code takes it that no two tensors of a call share memory. Where an output shares some
/// with an input, the call works on a copy of the output, which commit() puts in place.
class OverlapCopies {
 public:
  /// Throws InvalidArgument ARGUMENT_OVERLAP when two outputs share memory.
  OverlapCopies(const Artifact& artifact, const KernelCall& call);

  /// What the call is to work on.
  const std::vector<void*>& tensors() const { return tensors_; }
  /// Copies the outputs into their places. Without it they stay as they were.
  void commit();

 private:
  struct Copy {
    size_t parameter;
    AlignedMemory memory;
  };

  const Artifact& artifact_;
  const KernelCall& call_;
  std::vector<void*> tensors_;
  std::vector<Copy> copies_;
};

}  // namespace kiln
