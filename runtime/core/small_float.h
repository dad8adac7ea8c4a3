#pragma once

#include <cstdint>

#include "runtime/core/dtype.h"

namespace kiln {

/// The bits of `value` in a floating type of 8 or 16 bits, rounded to nearest, ties to even.
///
/// Past the range: infinity, or nan for float8_e4m3fn, which has no infinity (as ml_dtypes has it).
uint16_t to_small_float(DType type, double value);

/// The value of the bits of a floating type of 8 or 16 bits; exact.
double from_small_float(DType type, uint16_t bits);

/// `value` rounded to what a floating type of any size can hold.
double round_to(DType type, double value);

/// Whether `value` is a number that would become an infinity, or nan, in the type.
bool is_past_range(DType type, double value);

}  // namespace kiln
