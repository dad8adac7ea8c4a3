#pragma once

#include <cstddef>
#include <memory>

namespace kiln {
inline namespace client {
namespace detail {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// Says how much memory could not be had. Throws ResourceExhausted HOST_MEMORY.
[[noreturn]] void out_of_memory(std::size_t bytes);

/// A mapping of a memfd's first bytes, or of fresh memory. From kHugePage on it begins at a
/// multiple of that.
class Mapping {
 public:
  /// Throws ResourceExhausted HOST_MEMORY. `flags` are mmap's.
  Mapping(int fd, std::size_t bytes, int flags);
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  std::size_t size() const { return bytes_; }
  /// Of a memfd: takes all of it at once, in huge pages as far as the system has them.
  void use_huge_pages() const;

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
};

/// Zeros, which will lie in huge pages as far as the system has them. Throws ResourceExhausted
/// HOST_MEMORY.
std::unique_ptr<Mapping> fresh_mapping(std::size_t bytes);

}  // namespace detail
}  // namespace client
}  // namespace kiln
