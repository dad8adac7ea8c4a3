// Elements of a buffer are dealt to the lanes of a warp, row by row: how many neighbours a lane
// gets at a time is what a store to the buffer grows by with the lane.
//
//   W[t*4 + v] = .., 32 lanes    ->    side 4: element i is with lane floormod(floordiv(i, 4), 32)
//
// The layout of TVM's lower_warp_memory (WarpStoreCoeffFinder there).
#include "compiler/passes/warp_layout.h"

#include "compiler/analysis/affine.h"
#include "compiler/ir/build.h"

namespace kiln::passes {

using namespace ir;
using analysis::simplify;

WarpLayout::WarpLayout(int64_t lanes, std::vector<int64_t> shape)
    : lanes_(lanes), shape_(std::move(shape)) {
  for (const int64_t extent : shape_)
    total_ *= extent;
  if (lanes_ == 1) side_ = 1;  // one lane holds all
}

std::optional<WarpLayout> WarpLayout::of(const BufferRef& buffer, int64_t lanes) {
  std::vector<int64_t> shape;
  for (const Expr& extent : buffer->shape) {
    const std::optional<int64_t> value = as_const_int(extent);
    if (!value) return std::nullopt;
    shape.push_back(*value);
  }
  return WarpLayout(lanes, std::move(shape));
}

int64_t WarpLayout::elements() const {
  const int64_t period = side_ * lanes_;
  return (total_ + period - 1) / period * side_;
}

bool WarpLayout::learn(const std::vector<Expr>& indices, const VarRef& lane,
                       const analysis::Facts& facts) {
  const std::optional<int64_t> stride = analysis::stride_of(simplify(flat(indices), facts), lane);
  if (lanes_ == 1 || !stride || *stride == 0) return true;  // lane_of says what comes of it
  if (side_ == 0 && *stride > 0) side_ = *stride;
  return side_ == *stride;
}

Expr WarpLayout::lane_of(const std::vector<Expr>& indices, const analysis::Facts& facts) const {
  const Expr group = simplify(floordiv(flat(indices), index(side_)), facts);
  return simplify(floormod(group, index(lanes_)), facts);
}

Expr WarpLayout::place_of(const std::vector<Expr>& indices, const analysis::Facts& facts) const {
  const Expr at = simplify(flat(indices), facts);
  const Expr round = floordiv(at, index(side_ * lanes_));
  return simplify(round * side_ + floormod(at, index(side_)), facts);
}

Expr WarpLayout::flat(const std::vector<Expr>& indices) const {
  Expr at = index(0);
  for (size_t d = 0; d < indices.size(); ++d)
    at = at * shape_[d] + indices[d];
  return at;
}

}  // namespace kiln::passes
