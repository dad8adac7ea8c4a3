#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <kiln/types.h>

namespace kiln {
inline namespace client {
namespace detail {

/// Bytes of a compact array. Throws InvalidArgument for a negative dimension and ResourceExhausted
/// past what memory can hold.
std::size_t bytes_of(DType type, const std::vector<std::int64_t>& shape);

}  // namespace detail
}  // namespace client
}  // namespace kiln
