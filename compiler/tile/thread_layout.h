#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "compiler/ir/stmt.h"

namespace kiln::tile {

/// Of a sum, that one matrix instruction of 16-bit floats adds up.
constexpr int64_t kMatrixSteps = 16;

/// Where on one side of a tile an element is that a thread has: in its own memory, and in the tile.
struct Along {
  ir::Expr outer;
  ir::Expr inner;
  ir::Expr place;
};
/// Of a side that is one element long.
Along alone_along();

/// What of one side of a tile a thread has: `outer` groups of `inner` elements.
struct Share {
  int64_t outer = 1;
  int64_t inner = 1;
  int64_t outer_step = 0;  // from one group to the next, in the tile
  int64_t inner_step = 0;
  ir::Expr first;  // of the thread

  Along at(const ir::Expr& group, const ir::Expr& element) const;
};

/// Of rows and of columns.
using Shares = std::array<Share, 2>;

/// How the threads of a block share its tiles out: all tiles of so many rows alike, and all of so
/// many columns. Rows of a tile are those of threads with one threadIdx.y (and .z), which are side
/// by side in a warp.
///
/// By lanes that multiply: 16 threads along a row, each with up to 4 neighbours, and as many rows.
/// By tensor cores: four threads have a row, and of each 16 x 8 sums what a lane of mma.sync has
/// (analysis/matrix_product.h); each warp has rows of its own.
class ThreadLayout {
 public:
  ThreadLayout(int64_t warps, bool has_matrices);

  bool has_matrices() const { return has_matrices_; }
  int64_t threads() const;
  /// Threads that have one row, side by side.
  int64_t threads_of_row() const { return has_matrices_ ? kMatrixLanes : kLanes; }
  /// The number of a thread in its block.
  ir::Expr number() const;
  /// Of a tile of powers of two: 16 columns or more, and rows enough for all threads.
  Shares shares_of(const std::vector<int64_t>& shape) const;
  /// Has the body run by all threads.
  ir::Stmt around(ir::Stmt body) const;

 private:
  static constexpr int64_t kLanes = 16;
  static constexpr int64_t kMatrixLanes = 4;

  const int64_t warps_;
  const bool has_matrices_;
  const ir::VarRef x_;
  const ir::VarRef y_;
  const ir::VarRef z_;
};

}  // namespace kiln::tile
