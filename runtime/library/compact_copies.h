#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <kiln/runtime.h>

#include "runtime/core/artifact.h"
#include "runtime/cpu/workspace.h"

namespace kiln {

/// The arguments of one call, row-major without gaps: those that have gaps are copied.
class CompactCopies {
 public:
  /// `shapes`: of each parameter. The memory of `tensors` outlives this.
  CompactCopies(const std::vector<Parameter>& parameters, std::span<const KilnTensor> tensors,
                const std::vector<std::vector<int64_t>>& shapes);

  const std::vector<void*>& addresses() const { return addresses_; }
  /// Puts the outputs where they are wanted.
  void commit() const;

 private:
  const std::vector<Parameter>& parameters_;
  const std::span<const KilnTensor> tensors_;
  const std::vector<std::vector<int64_t>>& shapes_;
  std::vector<AlignedMemory> copies_;  // null where the memory is the caller's
  std::vector<void*> addresses_;
};

}  // namespace kiln
