#pragma once

#include <cstdint>
#include <optional>

#include "compiler/ir/expr.h"

namespace kiln::passes {

/// Of all elements of a buffer, as it lies in memory: the largest number where no other can say
/// them, nothing when an extent is no constant.
std::optional<int64_t> constant_bytes(const ir::Buffer& buffer);

/// Whether an output may be one for non-temporal stores: so large that nobody finds it in a cache,
/// of rows that do not share lines. Of what is not known the call says.
bool may_bypass_caches(const ir::Buffer& buffer);

}  // namespace kiln::passes
