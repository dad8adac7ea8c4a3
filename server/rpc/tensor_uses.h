#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace kiln::server {

/// Which tensors a call reads and which it writes, by their ids.
struct TensorUses {
  std::vector<std::string> reads;
  std::vector<std::string> writes;

  /// Whether the order of the two matters.
  bool conflicts_with(const TensorUses& other) const {
    return share(writes, other.writes) || share(writes, other.reads) || share(reads, other.writes);
  }

 private:
  static bool share(const std::vector<std::string>& some, const std::vector<std::string>& others) {
    return std::any_of(some.begin(), some.end(), [&](const std::string& id) {
      return std::find(others.begin(), others.end(), id) != others.end();
    });
  }
};

}  // namespace kiln::server
