#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include <unistd.h>

namespace kiln {
inline namespace client {
namespace detail {

/// Owns a file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }

  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_;
};

/// Zeros. From some MiB on in huge pages, as far as the system has them.
std::shared_ptr<std::byte[]> zeroed_memory(std::size_t bytes);

/// A memfd with these bytes, which nobody can change any more. Throws ResourceExhausted
/// HOST_MEMORY.
Descriptor sealed_copy(std::span<const std::byte> bytes);

/// The first bytes of a memfd as memory of this process's own: writing makes a copy of the page.
/// Throws ResourceExhausted HOST_MEMORY.
std::shared_ptr<std::byte[]> mapped_memory(const Descriptor& memory, std::size_t bytes);

}  // namespace detail
}  // namespace client
}  // namespace kiln
