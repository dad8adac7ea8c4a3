#pragma once

#include <cstdint>

#include "runtime/core/arguments.h"
#include "runtime/core/artifact.h"

namespace kiln {

/// What generated code leaves behind when a check of an index fires.
struct FiredCheck {
  int32_t check = -1;  // a position in Artifact::checks
  int64_t index = 0;
  int64_t extent = 0;
};

/// Throws InvalidArgument INDEX_OUT_OF_RANGE in the names of the caller (which may be null).
[[noreturn]] void fail_check(const FiredCheck& fired, const Artifact& artifact,
                             const KernelNames* names);

}  // namespace kiln
