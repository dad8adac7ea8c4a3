// Products of which a thread has few sums, and would load more than it multiplies.
//
//   4 x 4 sums a thread: 8 numbers are loaded for 16 products
//     ->  the sums of four threads, 8 x 8, are added up by each of them in a fourth of the steps:
//         16 numbers for 64 products; then each gets what the others have of its own sums
//
// Two numbers of each pair are given away at a time: to the neighbour along the columns half of
// what there is, to that along the rows a fourth.
#include "compiler/tile/shared_steps.h"

#include <algorithm>
#include <functional>

#include "compiler/ir/build.h"
#include "compiler/ir/matrix_unit.h"
#include "compiler/tile/thread_nest.h"

namespace kiln::tile {

using namespace ir;

namespace {

constexpr int64_t kPair = 2;
constexpr int64_t kThreads = 4;
constexpr int64_t kMost = 4;  // rows and columns of a thread: together 64 sums in registers

/// A side of the sums that two threads have together.
struct PairSide {
  explicit PairSide(const Share& share)
      : inner(share.inner),
        thread(floordiv(share.first, index(share.inner))),
        parity(floormod(thread, index(kPair))),
        first(share.first - parity * share.inner) {}

  int64_t inner;
  Expr thread;  // along the side
  Expr parity;
  Expr first;  // of the pair
};

class SharedSteps {
 public:
  explicit SharedSteps(const ThreadProduct& product)
      : product_(product),
        rows_(product.shares[0]),
        columns_(product.shares[1]),
        sums_(local("pairs", {kPair, kPair, rows_.inner, columns_.inner})),
        halves_(local("halves", {kPair, rows_.inner, columns_.inner})) {}

  Stmt run() const {
    Stmt all = Block::make({write_none(), write_steps(), give_along_columns(), give_along_rows()});
    return Allocate::make(sums_, Allocate::make(halves_, std::move(all)));
  }

 private:
  static BufferRef local(const char* name, const std::vector<int64_t>& shape) {
    std::vector<Expr> extents;
    for (const int64_t extent : shape)
      extents.push_back(index(extent));
    return Buffer::make(name, DType::Float32, std::move(extents), Scope::Local);
  }
  static Expr chosen(const Expr& condition, const Expr& a, const Expr& b) {
    return operation(language::Operator::Select, {condition, a, b});
  }
  static Expr load(const BufferRef& buffer, std::vector<Expr> place) {
    return ir::Load::make(buffer, std::move(place));
  }

  Stmt write_none() const {
    ThreadNest nest;
    const std::vector<Expr> at = place_in_pairs(nest);
    return nest.around(ir::Store::make(sums_, at, constant({DType::Float32, 1}, 0)),
                       LoopKind::Unrolled);
  }
  std::vector<Expr> place_in_pairs(ThreadNest& nest) const {
    return {nest.add("rows", kPair), nest.add("columns", kPair), nest.add("row", rows_.inner),
            nest.add("column", columns_.inner)};
  }

  /// Of each four steps the thread has one.
  Stmt write_steps() const {
    const VarRef group = Var::make("steps");
    const Expr step = Expr(group) * kThreads + (rows_.parity * kPair + columns_.parity);
    const BufferRef row = local("row", {kPair, rows_.inner});
    const BufferRef column = local("column", {kPair, columns_.inner});
    ThreadNest nest;
    const std::vector<Expr> at = place_in_pairs(nest);
    const Expr product = load(row, {at[0], at[2]}) * load(column, {at[1], at[3]});
    const Stmt added =
        nest.around(ir::Store::make(sums_, at, load(sums_, at) + product), LoopKind::Unrolled);
    Stmt body = Block::make({loaded(row, rows_, product_.rows, step),
                             loaded(column, columns_, product_.columns, step), added});
    body = Allocate::make(row, Allocate::make(column, std::move(body)));
    return ir::For::make(group, index(product_.steps / kThreads), LoopKind::Serial,
                         std::move(body));
  }
  static Stmt loaded(const BufferRef& own, const PairSide& side, const SharedFactor& factor,
                     const Expr& step) {
    ThreadNest nest;
    const Expr half = nest.add("half", kPair);
    const VarRef lane = Var::make("lane");
    const Expr place = half * side.inner + (Expr(lane) + side.first);
    Stmt one = ir::Store::make(own, {half, lane}, load(factor.memory, factor.indices(place, step)));
    one = ir::For::make(lane, index(side.inner), LoopKind::Vectorized, std::move(one));
    return nest.around(std::move(one), LoopKind::Unrolled);
  }

  /// What the thread keeps of two values, and what its neighbour gives it for the other one. They
  /// are variables of their own first: of a choice of elements NVRTC makes one of addresses, and
  /// has the array in memory.
  static Stmt exchanged(const Expr& parity, const Expr& first, const Expr& second,
                        const Expr& neighbour, int width,
                        const std::function<Stmt(const Expr&)>& store) {
    const std::vector<Expr> at = {index(0)};
    const BufferRef one = local("one", {1});
    const BufferRef two = local("two", {1});
    const BufferRef other = local("other", {1});
    const Expr is_first = equal(parity, index(0));
    const Stmt given = Shuffle::make(0, neighbour, width, other, at,
                                     chosen(is_first, load(two, at), load(one, at)));
    Stmt all =
        Block::make({ir::Store::make(one, at, first), ir::Store::make(two, at, second), given,
                     store(chosen(is_first, load(one, at), load(two, at)) + load(other, at))});
    for (const BufferRef& each : {one, two, other})
      all = Allocate::make(each, std::move(all));
    return all;
  }
  Stmt give_along_columns() const {
    ThreadNest nest;
    const Expr half = nest.add("rows", kPair);
    const Expr row = nest.add("row", rows_.inner);
    const Expr column = nest.add("column", columns_.inner);
    return nest.around(
        exchanged(columns_.parity, load(sums_, {half, index(0), row, column}),
                  load(sums_, {half, index(1), row, column}), index(1) - columns_.parity, kPair,
                  [&](const Expr& sum) {
                    return ir::Store::make(halves_, {half, row, column}, sum);
                  }),
        LoopKind::Unrolled);
  }
  Stmt give_along_rows() const {
    constexpr int64_t kLanes = kWarp / kPair;  // that have one row
    const Expr neighbour = (index(1) - rows_.parity) * kLanes + columns_.thread;
    ThreadNest nest;
    const Expr row = nest.add("row", rows_.inner);
    const Expr column = nest.add("column", columns_.inner);
    const std::vector<Expr> own = {index(0), index(0), row, column};
    return nest.around(exchanged(rows_.parity, load(halves_, {index(0), row, column}),
                                 load(halves_, {index(1), row, column}), neighbour, kWarp,
                                 [&](const Expr& sum) {
                                   return ir::Store::make(product_.sums, own,
                                                          load(product_.sums, own) + sum);
                                 }),
                       LoopKind::Unrolled);
  }

  const ThreadProduct& product_;
  const PairSide rows_;
  const PairSide columns_;
  const BufferRef sums_;
  const BufferRef halves_;
};

}  // namespace

bool are_steps_shared(int64_t rows, int64_t columns) {
  return std::min(rows, columns) >= kPair && std::max(rows, columns) <= kMost;
}

bool are_steps_shared(const ThreadProduct& product) {
  const Shares& shares = product.shares;
  return shares[0].outer == 1 && shares[1].outer == 1 && product.steps % kThreads == 0 &&
         are_steps_shared(shares[0].inner, shares[1].inner);
}

Stmt by_lanes_with_shared_steps(const ThreadProduct& product) { return SharedSteps(product).run(); }

}  // namespace kiln::tile
