#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/analysis/prove.h"
#include "compiler/ir/stmt.h"

namespace kiln::passes {

/// Which thread of a warp holds which elements of a buffer, and where: `side` neighbours each, in
/// turn.
///
///   64 elements, 32 lanes, side 1    element i is element floordiv(i, 32) of lane floormod(i, 32)
class WarpLayout {
 public:
  /// Of elements as `buffer` has them; nothing where its extents are not constants.
  static std::optional<WarpLayout> of(const ir::BufferRef& buffer, int64_t lanes);

  int64_t lanes() const { return lanes_; }
  /// How many elements a lane holds.
  int64_t elements() const;
  /// Whether lanes hold some that the buffer does not have.
  bool is_padded() const { return elements() * lanes_ != total_; }

  /// `side` from what a lane stores to in these iterations. False: another store says otherwise.
  bool learn(const std::vector<ir::Expr>& indices, const ir::VarRef& lane,
             const analysis::Facts& facts);
  /// Whether some store has said how many neighbours a lane holds.
  bool is_known() const { return side_ > 0; }

  /// The lane of an element, and which of that lane's elements it is.
  ir::Expr lane_of(const std::vector<ir::Expr>& indices, const analysis::Facts& facts) const;
  ir::Expr place_of(const std::vector<ir::Expr>& indices, const analysis::Facts& facts) const;

 private:
  WarpLayout(int64_t lanes, std::vector<int64_t> shape);
  ir::Expr flat(const std::vector<ir::Expr>& indices) const;

  int64_t lanes_;
  std::vector<int64_t> shape_;
  int64_t total_ = 1;
  int64_t side_ = 0;
};

}  // namespace kiln::passes
