#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/core/dtype.h"

namespace kiln::language {

/// A compact row-major array in memory: what both oracles read and write.
struct HostTensor {
  DType type = DType::Float32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;
};

}  // namespace kiln::language
