#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace kiln::analysis {

/// Steps of a recurrence whose elements, of so many bytes, each of so many threads of a GPU loads
/// before it computes: `fewest`, or as many as have enough bytes under way, up to 64.
///
/// By Little's law memory of 4.1 TB/s that answers in 0.7 to 0.8 us has 3 MB under way, as that of
/// an H200. With 64 registers for them a thread has 64 loads under way (sm_90); of 128 loads the
/// first results are waited for after 75.
constexpr int64_t steps_at_once(int64_t fewest, int64_t threads, int64_t bytes, int64_t lines) {
  constexpr int64_t kUnderWay = 3 << 20;
  constexpr int64_t kMostSteps = 64;
  constexpr int64_t kMostBytes = 256;
  const int64_t most =
      std::min(kMostSteps, kMostBytes / bytes) /
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(lines, 1))));
  const bool are_few = threads * fewest * lines * bytes < kUnderWay;
  return are_few ? std::max(fewest, most) : fewest;
}

}  // namespace kiln::analysis
