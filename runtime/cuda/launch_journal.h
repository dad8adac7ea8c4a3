#pragma once

#include <deque>
#include <string>

#include "runtime/cuda/launch_size.h"

namespace kiln::cuda {

/// The last launches of a device. A kernel that reads beside its memory is reported by whatever
/// call comes next, so who reads of a fault wants to know what ran before.
class LaunchJournal {
 public:
  void add(const std::string& entry, const LaunchSize& size);
  /// "the last launches, latest first: matmul_0 <<<(4, 1, 1), (256, 1, 1), 0>>>, ..."; empty
  /// before the first.
  std::string text() const;

 private:
  struct Entry {
    std::string entry;
    LaunchSize size;
  };
  std::deque<Entry> entries_;
};

}  // namespace kiln::cuda
