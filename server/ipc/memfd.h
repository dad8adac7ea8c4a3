#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/ipc/fd.h"

namespace kiln::server {

/// Anonymous memory of a fixed size, all zero, which other processes can map. Its size is sealed,
/// so that no holder can make another's access fault. Throws ResourceExhausted HOST_MEMORY.
Fd make_memfd(const char* name, int64_t bytes);

/// Whether `fd` is memory of so many bytes, and little more, that nobody can write, shrink or grow:
/// what is read of it stays as it was when it was looked at.
bool is_sealed_memory(const Fd& fd, int64_t bytes);

/// From now on memory that is mapped already can be written, but nobody can map it for writing.
void seal_against_new_writers(const Fd& fd);

/// A memfd with these contents, sealed against any change.
Fd make_sealed_memfd(const char* name, std::string_view contents);

/// Everything in a memfd. Reads instead of mapping, so a hostile sender cannot make it fault.
/// Throws Internal PEER_GARBAGE when it holds more than `limit` bytes or cannot be read.
std::string read_memfd(const Fd& fd, int64_t limit);

/// What the processor translates at once, where memory is taken in such pieces.
constexpr int64_t kHugePage = int64_t{2} << 20;

/// A shared mapping of a memfd, writable unless the memfd is sealed against that. From kHugePage on
/// it begins at a multiple of that.
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
  bool is_writable() const { return is_writable_; }

  /// Gives whole pages of kHugePage, counted from the first byte, memory in one piece; what they
  /// hold stays. The system may refuse, and then pages stay small.
  void use_huge_pages(int64_t first, int64_t count) const;
  /// Has all pages there before they are touched, which one by one takes several times as long.
  void populate() const;

 private:
  uint8_t* data_ = nullptr;
  int64_t bytes_ = 0;
  bool is_writable_ = false;
};

}  // namespace kiln::server
