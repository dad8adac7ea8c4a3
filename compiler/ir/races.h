#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "compiler/ir/stmt.h"

namespace kiln::ir {

/// Which thread of a launch does something.
struct GridThread {
  int64_t block = 0;
  int64_t thread = 0;

  /// Gives it its index along an axis.
  void set(ThreadAxis axis, int64_t index);
  /// Its index along threadIdx.x, which is the last digit of `thread`.
  int64_t along_x() const;
};

/// Whether threads wait for each other somewhere in a statement, and for whom.
struct Waits {
  bool for_block = false;
  bool for_warp = false;
  bool at_all() const { return for_block || for_warp; }
};
Waits waits_in(const Stmt& stmt);

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
  /// Likewise, that it may change the element in one piece, as others may at the same time.
  bool change(int64_t element, GridThread by, Moment now);

 private:
  struct Element;
  static bool is_read_by_others(const Element& at, GridThread by, Moment now);

  struct Element {
    Moment written{-1, -1};
    GridThread writer;
    std::vector<int64_t> same;    // threads that stored the same value since
    bool in_one_piece = false;    // it was changed, not stored to, and maybe by more than `writer`:
    bool others_blocks = false;   // by other blocks in this launch
    bool others_threads = false;  // by other threads since the last barrier
    Moment read{-1, -1};
    GridThread reader;        // the first one of its moment
    bool by_blocks = false;   // in this launch, by several
    bool by_threads = false;  // since the last barrier, by several
  };
  Element& at_place(int64_t element);

  /// A page has so many: of a large buffer a run may use few.
  static constexpr int64_t kPage = 64;
  std::vector<std::unique_ptr<Element[]>> pages_;
};

}  // namespace kiln::ir
