#pragma once

#include <cstddef>

#include <kiln/array.h>

namespace kiln {
inline namespace client {
namespace detail {

/// The value of an element of 16 or 8 bits: float16, bfloat16, float8_e4m3fn, float8_e5m2.
float small_float(const std::byte* data, DType type);

}  // namespace detail
}  // namespace client
}  // namespace kiln
