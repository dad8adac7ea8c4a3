#pragma once

#include <span>

#include "compiler/tile/bytecode_code.h"
#include "runtime/core/size_expr.h"

namespace kiln::tile {

/// An int64 over the sizes of a call, none of which is negative: what tensors take in memory, and
/// whether rows begin at multiples, 1 or 0.
Value write_size(CodeWriter& code, const SizeExpr& expr, std::span<const Value> sizes);

}  // namespace kiln::tile
