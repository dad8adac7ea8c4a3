#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/ipc/fd.h"

namespace kiln::server {

/// Anonymous memory of a fixed size, all zero, which other processes can map. Its size is sealed,
/// so that no holder can make another's access fault. Throws ResourceExhausted HOST_MEMORY.
Fd make_memfd(const char* name, int64_t bytes);

/// A memfd with these contents, sealed against any change.
Fd make_sealed_memfd(const char* name, std::string_view contents);

/// Everything in a memfd. Reads instead of mapping, so a hostile sender cannot make it fault.
/// Throws Internal PEER_GARBAGE when it holds more than `limit` bytes or cannot be read.
std::string read_memfd(const Fd& fd, int64_t limit);

/// What the processor translates at once, where memory is taken in such pieces.
constexpr int64_t kHugePage = int64_t{2} << 20;

/// A shared, writable mapping of a memfd. From kHugePage on it begins at a multiple of that.
class Mapping {
 public:
  Mapping() = default;
  /// Throws Internal PEER_GARBAGE when `fd` is smaller than `bytes` or could shrink.
  Mapping(const Fd& fd, int64_t bytes);
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  uint8_t* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

  /// Gives whole pages of kHugePage, counted from the first byte, memory in one piece; what they
  /// hold stays. The system may refuse, and then pages stay small.
  void use_huge_pages(int64_t first, int64_t count) const;

 private:
  uint8_t* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace kiln::server
