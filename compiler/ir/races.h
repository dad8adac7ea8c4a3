#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "compiler/ir/stmt.h"

namespace kiln::ir {

/// Which thread of a launch does something.
struct GridThread {
  int64_t block = 0;
  int64_t thread = 0;

  /// Gives it its index along an axis.
  void set(ThreadAxis axis, int64_t index);
};

/// What has been done to the elements of one buffer, by whom and when.
class AccessHistory {
 public:
  /// How far the launches of a kernel have come.
  struct Moment {
    int64_t launch = 0;
    int64_t barrier = 0;
  };

  /// Whether the thread may read the element: nothing that it cannot have waited for was stored.
  bool read(int64_t element, GridThread by, Moment now);
  /// Likewise, that it may store to it. A store of the value that is there already is seen by
  /// nobody.
  bool write(int64_t element, GridThread by, Moment now, bool changes);

 private:
  struct Element {
    Moment written{-1, -1};
    GridThread writer;
    std::vector<int64_t> same;  // threads that stored the same value since
    Moment read{-1, -1};
    GridThread reader;        // the first one of its moment
    bool by_blocks = false;   // in this launch, by several
    bool by_threads = false;  // since the last barrier, by several
  };
  std::unordered_map<int64_t, Element> elements_;
};

}  // namespace kiln::ir
