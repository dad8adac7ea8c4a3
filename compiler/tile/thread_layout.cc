// Which elements of a block's tiles a thread has.
#include "compiler/tile/thread_layout.h"

#include <algorithm>

#include "compiler/ir/build.h"
#include "compiler/ir/matrix_unit.h"
#include "runtime/core/error.h"

namespace kiln::tile {

using namespace ir;

namespace {

constexpr int64_t kGroup = 4;  // floats that move at once
constexpr int64_t kPair = 2;   // rows of a lane of mma.sync, eight apart, and columns
constexpr int64_t kMatrixLanesDown = 8;

}  // namespace

Along alone_along() { return {index(0), index(0), index(0)}; }

Along Share::at(const Expr& group, const Expr& element) const {
  return {group, element, group * outer_step + (element * inner_step + first)};
}

ThreadLayout::ThreadLayout(int64_t warps, bool has_matrices)
    : warps_(warps),
      has_matrices_(has_matrices),
      x_(Var::make("threadIdx.x")),
      y_(Var::make("threadIdx.y")),
      z_(Var::make("threadIdx.z")) {}

int64_t ThreadLayout::threads() const { return warps_ * kWarp; }

Expr ThreadLayout::number() const {
  if (has_matrices_) return Expr(z_) * kWarp + (Expr(y_) * kMatrixLanes + Expr(x_));
  return Expr(y_) * kLanes + Expr(x_);
}

Shares ThreadLayout::shares_of(const std::vector<int64_t>& shape) const {
  KILN_CHECK(shape.size() == 2);
  const int64_t rows = shape[0];
  const int64_t columns = shape[1];
  Shares shares;
  for (Share& share : shares)
    share.first = index(0);
  if (has_matrices_) {
    if (rows > 1) {
      const int64_t of_warp = rows / warps_;
      shares[0] = {of_warp / kMatrixRows, kPair, kMatrixRows, kMatrixRowsAtOnce,
                   Expr(z_) * of_warp + Expr(y_)};
    }
    if (columns > 1)
      shares[1] = {columns / kMatrixColumns, kPair, kMatrixColumns, 1, Expr(x_) * kPair};
    return shares;
  }
  const auto grouped = [](int64_t extent, int64_t threads, const VarRef& thread) {
    const int64_t inner = std::min(kGroup, extent / threads);
    return Share{extent / (threads * inner), inner, threads * inner, 1, Expr(thread) * inner};
  };
  if (rows > 1) shares[0] = grouped(rows, threads() / kLanes, y_);
  if (columns > 1) shares[1] = grouped(columns, kLanes, x_);
  return shares;
}

Stmt ThreadLayout::around(Stmt body) const {
  const auto bound = [](const VarRef& var, int64_t extent, ThreadAxis axis, Stmt inner) {
    return ir::For::make(var, index(extent), LoopKind::ThreadIndex, axis, std::move(inner));
  };
  body = bound(x_, has_matrices_ ? kMatrixLanes : kLanes, ThreadAxis::ThreadX, std::move(body));
  body = bound(y_, has_matrices_ ? kMatrixLanesDown : threads() / kLanes, ThreadAxis::ThreadY,
               std::move(body));
  return has_matrices_ ? bound(z_, warps_, ThreadAxis::ThreadZ, std::move(body)) : body;
}

}  // namespace kiln::tile
