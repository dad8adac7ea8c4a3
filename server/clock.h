#pragma once

#include <chrono>

namespace kiln::server {

/// Monotonic, so that setting the host's clock expires nothing.
using Clock = std::chrono::steady_clock;

inline double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace kiln::server
