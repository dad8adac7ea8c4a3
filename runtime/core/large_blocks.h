#pragma once

#include <cstddef>
#include <cstdlib>

namespace kiln {

/// Has malloc keep some MiB of what is freed, as glibc's does by itself once a program has freed a
/// block of this size (M_MMAP_THRESHOLD and M_TRIM_THRESHOLD in mallopt(3)); what somebody has set
/// stays as it is. Without it each MiB that gRPC reads lies in memory that is taken from the system
/// and given back at once, and a fresh page of 4 KiB costs more than filling it.
inline void keep_freed_blocks() {
  constexpr std::size_t kBlock = std::size_t{16} << 20;
  // A compiler may leave out an allocation that nobody can see.
  void* volatile const block = std::malloc(kBlock);
  std::free(block);
}

}  // namespace kiln
