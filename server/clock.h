#pragma once

#include <chrono>

namespace kiln::server {

/// Monotonic, so that setting the host's clock expires nothing.
using Clock = std::chrono::steady_clock;

inline double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

/// When a time-out of so many seconds is over; never where it is none (0, or no number), or years.
inline Clock::time_point deadline_after(double seconds) {
  if (!(seconds > 0 && seconds < 1e8)) return Clock::time_point::max();
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace kiln::server
