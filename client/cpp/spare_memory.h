#pragma once

#include <cstddef>
#include <memory>

namespace kiln {
inline namespace client {
namespace detail {

/// Memory of any contents, for who writes all of it. From some MiB on it may be what an array of
/// this size gave back: its pages are there, where fresh ones are zeroed first, which takes longer
/// than what a transfer writes into them. Throws ResourceExhausted HOST_MEMORY.
///
/// What is kept is the system's as soon as that wants memory: at most 256 MiB.
std::shared_ptr<std::byte[]> memory_to_fill(std::size_t bytes);

}  // namespace detail
}  // namespace client
}  // namespace kiln
