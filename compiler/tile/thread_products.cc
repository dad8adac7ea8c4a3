// Products of tiles as loops of one thread.
#include "compiler/tile/thread_products.h"

#include <algorithm>

#include "compiler/ir/build.h"
#include "compiler/tile/thread_nest.h"

namespace kiln::tile {

using namespace ir;

/// In the order of the fragments of a warp (analysis/matrix_product.h), of as many columns at a
/// time as have registers for theirs.
Stmt by_matrices(const ThreadProduct& product) {
  constexpr int64_t kMostTiles = 16;
  const BufferRef& sums = product.sums;
  const Shares& shares = product.shares;
  std::vector<Stmt> all;
  for (int64_t first = 0; first < shares[1].outer; first += kMostTiles) {
    const VarRef group = Var::make("steps");
    const VarRef step = Var::make("step");
    const Expr at_step = Expr(group) * kMatrixSteps + Expr(step);
    ThreadNest nest;
    const Expr ro = nest.add("rows", shares[0].outer);
    const Expr co =
        nest.add("columns", std::min(kMostTiles, shares[1].outer - first)) + index(first);
    const Expr ri = nest.add("row", shares[0].inner);
    const Expr ci = nest.add("column", shares[1].inner);
    const Indices at = {shares[0].at(ro, ri), shares[1].at(co, ci)};
    const auto factor = [&](const SharedFactor& of, const Expr& place) {
      return ir::Cast::make({DType::Float32, 1},
                            ir::Load::make(of.memory, of.indices(place, at_step)));
    };
    const Expr sum = ir::Load::make(sums, own_place(at)) +
                     factor(product.rows, at[0].place) * factor(product.columns, at[1].place);
    Stmt body = nest.around(ir::Store::make(sums, own_place(at), sum), LoopKind::Serial);
    body = ir::For::make(step, index(kMatrixSteps), LoopKind::Serial, std::move(body));
    const int64_t groups = (product.steps + kMatrixSteps - 1) / kMatrixSteps;
    all.push_back(ir::For::make(group, index(groups), LoopKind::Serial, std::move(body)));
  }
  return Block::make(std::move(all));
}

/// What a thread needs of a step is in registers first: neighbours are loaded at once.
Stmt by_lanes(const ThreadProduct& product) {
  const VarRef step = Var::make("step");
  const BufferRef& sums = product.sums;
  const Shares& shares = product.shares;
  std::array<BufferRef, 2> own;
  std::vector<Stmt> body;
  for (const size_t side : {0, 1}) {
    const SharedFactor& factor = side == 0 ? product.rows : product.columns;
    const Share& share = shares[side];
    own[side] = Buffer::make(side == 0 ? "row" : "column", DType::Float32,
                             {index(share.outer), index(share.inner)}, Scope::Local);
    ThreadNest groups;
    const Expr outer = groups.add("group", share.outer);
    const VarRef inner = Var::make("lane");
    Stmt loaded = ir::Store::make(
        own[side], {outer, inner},
        ir::Load::make(factor.memory, factor.indices(share.at(outer, inner).place, step)));
    loaded = ir::For::make(inner, index(share.inner), LoopKind::Vectorized, std::move(loaded));
    body.push_back(groups.around(std::move(loaded), LoopKind::Unrolled));
  }
  body.push_back(for_each_element(shares, [&](const Indices& at) {
    const auto of = [&](size_t side) {
      return ir::Load::make(own[side], {at[side].outer, at[side].inner});
    };
    return ir::Store::make(sums, own_place(at),
                           ir::Load::make(sums, own_place(at)) + of(0) * of(1));
  }));
  Stmt all = Block::make(std::move(body));
  for (const BufferRef& each : own)
    all = Allocate::make(each, std::move(all));
  return ir::For::make(step, index(product.steps), LoopKind::Serial, std::move(all));
}

}  // namespace kiln::tile
