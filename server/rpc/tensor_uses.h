#pragma once

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

namespace kiln::server {

/// Which tensors a call reads and which it writes, by their ids.
struct TensorUses {
  std::vector<std::string> reads;
  std::vector<std::string> writes;
};

/// What the calls under way use.
class UsesUnderWay {
 public:
  void add(const TensorUses& uses) {
    count(reads_, uses.reads);
    count(writes_, uses.writes);
  }
  void remove(const TensorUses& uses) {
    discount(reads_, uses.reads);
    discount(writes_, uses.writes);
  }

  /// Whether the order of these and of one that is under way matters.
  bool conflict_with(const TensorUses& uses) const {
    return has_any(writes_, uses.writes) || has_any(reads_, uses.writes) ||
           has_any(writes_, uses.reads);
  }

 private:
  using Counts = std::unordered_map<std::string, int>;

  static void count(Counts& counts, const std::vector<std::string>& ids) {
    for (const std::string& id : ids)
      ++counts[id];
  }
  static void discount(Counts& counts, const std::vector<std::string>& ids) {
    for (const std::string& id : ids) {
      const auto at = counts.find(id);
      if (at != counts.end() && --at->second == 0) counts.erase(at);
    }
  }
  static bool has_any(const Counts& counts, const std::vector<std::string>& ids) {
    return std::any_of(ids.begin(), ids.end(),
                       [&](const std::string& id) { return counts.count(id) != 0; });
  }

  Counts reads_;
  Counts writes_;
};

}  // namespace kiln::server
