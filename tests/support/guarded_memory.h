#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace kiln::testing {

/// Memory for one argument of a compiled kernel, between two pages that may not be touched: an
/// access outside of it fails the test, naming the argument and how far outside it was, and ends
/// the process.
class GuardedMemory {
 public:
  /// Which of its ends lies right at a page that may not be touched; the other is less than a page
  /// away from one, so that only accesses far outside are seen there.
  enum class Edge : uint8_t { Begin, End };

  GuardedMemory(const std::string& name, size_t bytes, Edge edge);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  size_t slot_;
  std::byte* pages_;
  size_t page_bytes_;
  std::byte* data_;
  size_t bytes_;
};

}  // namespace kiln::testing
