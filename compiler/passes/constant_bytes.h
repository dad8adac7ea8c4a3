#pragma once

#include <cstdint>
#include <optional>

#include "compiler/ir/expr.h"

namespace kiln::passes {

/// Of all elements of a buffer, as it lies in memory: the largest number where no other can say
/// them, nothing when an extent is no constant.
std::optional<int64_t> constant_bytes(const ir::Buffer& buffer);

}  // namespace kiln::passes
