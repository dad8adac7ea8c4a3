#pragma once

#include "runtime/core/dtype.h"

// Integers of which CPUs and GPUs multiply and add several at once.
namespace kiln::ir {

/// int8, uint8.
inline bool is_byte(DType type) { return type == DType::Int8 || type == DType::UInt8; }

/// Those that an int16 holds.
inline bool is_word(DType type) { return is_byte(type) || type == DType::Int16; }

}  // namespace kiln::ir
