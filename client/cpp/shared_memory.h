#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "client/cpp/descriptor.h"

namespace kiln {
inline namespace client {
namespace detail {

/// Zeros. From some MiB on in huge pages, as far as the system has them.
std::shared_ptr<std::byte[]> zeroed_memory(std::size_t bytes);

/// A memfd with these bytes, which nobody can change any more. Throws ResourceExhausted
/// HOST_MEMORY.
Descriptor sealed_copy(std::span<const std::byte> bytes);

/// Seals a memfd against changes of its size, and of its bytes unless it is mapped for writing or
/// the system holds a page of it for a moment: what can be written, the service copies. False, with
/// errno, when it cannot be sealed.
bool seal(const Descriptor& memory);

/// The first bytes of a memfd as memory of this process's own: writing makes a copy of the page.
/// Throws ResourceExhausted HOST_MEMORY.
std::shared_ptr<std::byte[]> mapped_memory(const Descriptor& memory, std::size_t bytes);

}  // namespace detail
}  // namespace client
}  // namespace kiln
