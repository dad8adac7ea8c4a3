#pragma once

#include <cstdint>
#include <vector>

#include "runtime/device.h"

namespace kiln {

/// The memory that the elements of a tensor span, from its first byte to past its last.
struct MemorySpan {
  uintptr_t begin = 0;
  uintptr_t end = 0;  // equal to begin: no elements
  int64_t bytes() const { return static_cast<int64_t>(end - begin); }
};

/// An output of a call that shares memory with an input of it.
struct SharedOutput {
  size_t parameter = 0;
  MemorySpan span;
};

/// Generated code takes it that no two tensors of a call share memory: these outputs need memory of
/// their own while the call runs. Throws InvalidArgument ARGUMENT_OVERLAP when two outputs share
/// memory.
std::vector<SharedOutput> shared_outputs(const Artifact& artifact, const KernelCall& call);

/// The strides of parameter `i` in elements.
std::span<const int64_t> strides_of(const Artifact& artifact, const BoundCall& bound, size_t i);

}  // namespace kiln
