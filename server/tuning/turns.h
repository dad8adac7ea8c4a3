#pragma once

#include <cstdint>
#include <vector>

namespace kiln::server {

inline constexpr uint32_t kTurns = 7;         // of a candidate against the best
inline constexpr double kShortestRun = 1e-9;  // less is what the clock cannot tell

/// The one in the middle, in seconds.
double median(std::vector<double> seconds);

/// Runs of a candidate, of the best so far and of the default, one after the other in each turn:
/// seconds.
struct Turns {
  std::vector<double> own;
  std::vector<double> best;
  std::vector<double> defaults;

  /// How many times as fast as the default.
  double speedup() const { return median(defaults) / median(own); }
};

/// What a candidate must be against the best: the winner of so many turns, and at most this part of
/// its time in the middle.
struct Bar {
  int64_t wins = 0;
  double part = 0;

  /// Whether a candidate takes the place of the best. It must not be slower than the default
  /// either, which has been faster in these turns than when the best was measured.
  bool is_passed(const Turns& turns) const;
};

/// Chance seldom wins six of seven, and 2 % are no difference.
inline constexpr Bar kBetter{6, 0.98};
/// A record stays one unless it is seen to be none.
inline constexpr Bar kKept{2, 1.02};

}  // namespace kiln::server
