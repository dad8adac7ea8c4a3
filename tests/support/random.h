#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace kiln::testing {

/// A source of choices that one seed repeats.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  /// A number of 0 .. count - 1.
  int below(int count) { return static_cast<int>(engine_() % static_cast<uint64_t>(count)); }
  /// A number of low .. high, both included.
  int between(int low, int high) { return low + below(high - low + 1); }
  bool chance(double probability) {
    return static_cast<double>(engine_() >> 11) * 0x1.0p-53 < probability;
  }
  template <typename T>
  const T& pick(const std::vector<T>& list) {
    return list[below(static_cast<int>(list.size()))];
  }
  template <typename T>
  void shuffle(std::vector<T>& list) {
    for (size_t i = list.size(); i > 1; --i)
      std::swap(list[i - 1], list[below(static_cast<int>(i))]);
  }

 private:
  std::mt19937_64 engine_;
};

/// KILN_FUZZ_SEED, or what is given.
inline uint64_t fuzz_seed(uint64_t otherwise = 1) {
  const char* text = std::getenv("KILN_FUZZ_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}
/// KILN_FUZZ_ROUNDS, or KILN_FUZZ_PERCENT of what is given, one at least, or what is given.
inline int fuzz_rounds(int otherwise) {
  const char* text = std::getenv("KILN_FUZZ_ROUNDS");
  if (text != nullptr) return std::atoi(text);
  const char* percent = std::getenv("KILN_FUZZ_PERCENT");
  return percent != nullptr ? std::max(1, otherwise * std::atoi(percent) / 100) : otherwise;
}

}  // namespace kiln::testing
