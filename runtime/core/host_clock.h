#pragma once

#include <chrono>
#include <cstdint>

namespace kiln {

/// Of the monotonic clock, which the processes of a host share: times of spans.
inline int64_t nanoseconds(std::chrono::steady_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

}  // namespace kiln
