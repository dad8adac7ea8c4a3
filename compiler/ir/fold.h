#pragma once

#include <cstdint>
#include <optional>

#include "compiler/ir/expr.h"

namespace kiln::ir {

/// `value` as an integer of `type` holds it: wrapped to its bits. UInt64 keeps its bits in an int64.
int64_t wrapped(DType type, int64_t value);

/// a op b of integers (or bools) of one type, with the wrapping that the language defines. Comparisons
/// give 0 or 1. Nothing for a division by zero, or when the operator is not one of integers.
std::optional<int64_t> fold_int(Operator op, DType type, int64_t a, int64_t b);
/// As above, of one operand.
std::optional<int64_t> fold_int(Operator op, DType type, int64_t a);

}  // namespace kiln::ir
