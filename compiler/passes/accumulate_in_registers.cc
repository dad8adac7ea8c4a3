// Keeps the elements that a reduction adds up, over a tile written out by unrolled and vectorised
// loops, in registers while it runs.
//
//   for k in 0..l { for i in 0..8 unroll { for j in 0..32 vectorize { C[i, j] = C[i, j] + S } } }
//     ->
//   allocate C.acc: float32[8, 32] scope(local) {
//     for i in 0..8 unroll { for j in 0..32 vectorize { C.acc[i, j] = C[i, j] } }
//     for k in 0..l { for i .. { for j .. { C.acc[i, j] = C.acc[i, j] + S } } }
//     for i in 0..8 unroll { for j in 0..32 vectorize { C[i, j] = C.acc[i, j] } }
//   }
//
// The last vector of a row is padded where an epilogue of several short ones would take longer: of
// 31 elements there are 32 in the registers, of which the last is no element and is not stored.
//
// Where a loop before stores a constant to just these elements, they begin with it instead, and
// that loop is gone.
//
// A tile in serial loops is packed into memory of its own while a long sum passes, if it is small
// beside the first cache: rows of C may lie so far apart that they evict each other (conflict
// misses). A short loop over k is written out.
//
// Stands before flatten_storage, where elements of different indices are easily told apart; LLVM
// could not, once a stride is a variable.
//
// Rewrites a reduction over an accumulator tile: load the tile, reduce into a buffer of constant
// indices, store it. LLVM then promotes that buffer to registers (SROA), which gives the
// micro-kernel of Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication"
// (2008); in general it is the scalar replacement of Callahan, Carr and Kennedy (1990). Which tiles
// may be kept apart accumulator_tile.cc decides, whether their vectors are padded
// padded_vectors.cc.
#include <algorithm>
#include <optional>
#include <vector>

#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/accumulator_tile.h"
#include "compiler/passes/padded_vectors.h"
#include "compiler/passes/pass_context.h"

namespace kiln::passes {
namespace {

using namespace ir;

/// A short loop over k is written out up to so many bytes of updates, so that what it reads for
/// each of its steps can stay in registers over the loops around it: sixteen vectors of 64 bytes,
/// which is half of the registers.
constexpr int64_t kWrittenOutBytes = 1024;

/// The vectors of a tile, where they are to be padded: always those of its innermost loop.
std::optional<PaddedLoop> padded_loop_of(const AccumulatorTile& tile) {
  const Layer& last = tile.layers.back();
  if (!last.of_tile || last.loop == nullptr) return std::nullopt;
  return padded_loop(*last.loop, *tile.store);
}

/// The update with the accumulator in the place of the element. Padding lanes load nothing, and
/// what they add up is never stored.
class UseAccumulator : public Mutator {
 public:
  UseAccumulator(const AccumulatorTile& tile, const std::optional<PaddedLoop>& padded,
                 BufferRef accumulator, std::vector<Expr> place)
      : tile_(tile),
        padded_(padded),
        accumulator_(std::move(accumulator)),
        place_(std::move(place)) {}

 private:
  using Mutator::visit;
  Expr visit(const Load& load) override {
    if (load.buffer == tile_.store->buffer) return Load::make(accumulator_, place_);
    const bool may_be_outside =
        padded_ && std::ranges::any_of(load.indices, [&](const Expr& index) {
          return uses_var(index, padded_->loop->var);
        });
    if (!may_be_outside) return Mutator::visit(load);
    // What an index reads may be outside as well.
    std::vector<Expr> indices;
    for (const Expr& index : load.indices)
      indices.push_back((*this)(index));
    const int lanes = load.type.lanes;  // of a Dot's group
    return Load::make(load.buffer, indices,
                      lanes > 1 ? Broadcast::make(padded_->is_inside, lanes) : padded_->is_inside);
  }
  Stmt visit(const Store& store) override {
    return Store::make(accumulator_, place_, (*this)(store.value));
  }
  Stmt visit(const For& loop) override {
    if (!padded_ || &loop != padded_->loop) return Mutator::visit(loop);
    return For::make(loop.var, padded_->extent, loop.loop_kind, (*this)(loop.body));
  }

  const AccumulatorTile& tile_;
  const std::optional<PaddedLoop>& padded_;
  const BufferRef accumulator_;
  const std::vector<Expr> place_;
};

class AccumulateInRegisters : public Mutator {
  using Mutator::visit;

  /// Its sums have registers of their own.
  Stmt visit(const MultiplyTiles& node) override { return &node; }

  /// A constant that a sum begins with goes into the registers alone.
  Stmt visit(const Block& block) override {
    std::vector<Stmt> body;
    for (size_t i = 0; i < block.body.size(); ++i) {
      const auto* loop = i + 1 < block.body.size() ? as<For>(block.body[i + 1]) : nullptr;
      const Expr start = loop ? constant_of(block.body[i]) : Expr();
      const std::optional<AccumulatorTile> tile = start ? tile_of(*loop) : std::nullopt;
      const bool begins = tile && stores_to(*tile, block.body[i], start);
      body.push_back(begins ? rewrite(*loop, *tile, start) : (*this)(block.body[i]));
      if (begins) ++i;
    }
    return body == block.body ? Stmt(&block) : Block::make(std::move(body));
  }

  Stmt visit(const For& loop) override {
    if (loop.loop_kind == LoopKind::Vectorized) {
      if (const Stmt interchanged = with_vectors_inside(loop)) return (*this)(interchanged);
    }
    if (const std::optional<AccumulatorTile> tile = tile_of(loop)) return rewrite(loop, *tile, {});
    const bool is_vector = loop.loop_kind == LoopKind::Vectorized;
    around_.push_back(loop.var);
    if (is_vector) lanes_.push_back(loop.var);
    const Stmt result = Mutator::visit(loop);
    if (is_vector) lanes_.pop_back();
    around_.pop_back();
    return result;
  }

  /// The tile of a loop, where lanes around it would not each keep their own.
  std::optional<AccumulatorTile> tile_of(const For& loop) const {
    if (loop.loop_kind != LoopKind::Serial && loop.loop_kind != LoopKind::Unrolled) {
      return std::nullopt;
    }
    std::optional<AccumulatorTile> tile = accumulator_tile(loop, around_);
    return tile && !is_shared_by_lanes(*tile) ? tile : std::nullopt;
  }

  /// The constant that loops store; null where they do anything else.
  static Expr constant_of(const Stmt& loops) {
    const StmtNode* at = loops.get();
    while (const auto* loop = as<For>(at))
      at = loop->body.get();
    const auto* store = as<Store>(at);
    const bool is_constant = store != nullptr && (as<FloatImm>(store->value) != nullptr ||
                                                  as<IntImm>(store->value) != nullptr);
    return is_constant ? store->value : nullptr;
  }

  /// Whether `before` stores that value to the elements of the tile, and does nothing else.
  static bool stores_to(const AccumulatorTile& tile, const Stmt& before, const Expr& value) {
    const Store& store = *tile.store;
    return equal_trees(
        before, over_tile(tile, std::nullopt, Store::make(store.buffer, store.indices, value)));
  }

  /// Whether lanes of a loop around add to the same elements: each would keep its own.
  bool is_shared_by_lanes(const AccumulatorTile& tile) const {
    return std::ranges::any_of(lanes_, [&](const VarRef& lane) {
      return std::ranges::none_of(tile.store->indices,
                                  [&](const Expr& index) { return uses_var(index, lane); });
    });
  }

  /// `start`: what the elements are before the loop; null where they are loaded.
  Stmt rewrite(const For& loop, const AccumulatorTile& tile, const Expr& start) {
    const std::optional<PaddedLoop> padded = padded_loop_of(tile);
    const Expr is_inside = padded ? padded->is_inside : Expr();
    std::vector<Expr> shape;
    std::vector<Expr> place;
    for (const Layer& layer : tile.layers) {
      if (!layer.of_tile || layer.loop == nullptr) continue;
      shape.push_back(extent_of(*layer.loop, padded));
      place.push_back(layer.loop->var);
    }
    const Store& store = *tile.store;
    const BufferRef accumulator =
        Buffer::make(store.buffer->name + ".acc", store.buffer->type, shape, Scope::Local);
    Stmt update = UseAccumulator(tile, padded, accumulator, place)(loop.body);
    // Of a tile in memory, a part may go into registers.
    if (!tile.in_registers) {
      around_.push_back(loop.var);
      update = (*this)(update);
      around_.pop_back();
    }
    const Expr first = start ? start : Load::make(store.buffer, store.indices, is_inside);
    const Stmt in = over_tile(tile, padded, Store::make(accumulator, place, first));
    const Stmt out = over_tile(
        tile, padded,
        Store::make(store.buffer, store.indices, Load::make(accumulator, place), is_inside));
    return Allocate::make(
        accumulator,
        Block::make(
            {in, For::make(loop.var, loop.extent, kind_of(loop, tile, padded), loop.thread, update),
             out}));
  }

  /// A vectorized loop over a serial one, interchanged as vectorize_loops would leave them; null
  /// where there is none inside.
  static Stmt with_vectors_inside(const For& loop) {
    const auto* inner = as<For>(loop.body.get());
    if (inner == nullptr || inner->loop_kind != LoopKind::Serial ||
        uses_var(inner->extent, loop.var)) {
      return nullptr;
    }
    return For::make(inner->var, inner->extent, inner->loop_kind,
                     For::make(loop.var, loop.extent, loop.loop_kind, inner->body));
  }

  /// Unrolled for a short reduction. The product is kept below twice the limit, so that it cannot
  /// overflow.
  static LoopKind kind_of(const For& reduction, const AccumulatorTile& tile,
                          const std::optional<PaddedLoop>& padded) {
    int64_t bytes = size_of(tile.store->buffer->type);
    for (const Layer& layer : tile.layers) {
      if (layer.loop == nullptr) continue;
      const std::optional<int64_t> extent = as_const_int(extent_of(*layer.loop, padded));
      if (!extent || *extent > kWrittenOutBytes) return reduction.loop_kind;
      bytes = std::min(bytes * std::max<int64_t>(*extent, 1), 2 * kWrittenOutBytes);
    }
    const std::optional<int64_t> steps = as_const_int(reduction.extent);
    const bool is_short = steps && *steps <= kWrittenOutBytes / bytes;
    return is_short ? LoopKind::Unrolled : reduction.loop_kind;
  }

  static Expr extent_of(const For& loop, const std::optional<PaddedLoop>& padded) {
    return padded && padded->loop == &loop ? padded->extent : loop.extent;
  }

  /// The statement in the loops and guards of the tile, with variables of its own.
  static Stmt over_tile(const AccumulatorTile& tile, const std::optional<PaddedLoop>& padded,
                        Stmt body) {
    for (auto layer = tile.layers.rbegin(); layer != tile.layers.rend(); ++layer) {
      if (!layer->of_tile) continue;
      if (layer->guard != nullptr) {
        body = If::make(layer->guard->condition, body, nullptr, layer->guard->likely);
        continue;
      }
      const For& loop = *layer->loop;
      const VarRef var = Var::make(loop.var->name);
      body = For::make(var, extent_of(loop, padded), loop.loop_kind,
                       substitute(body, {{loop.var, var}}));
    }
    return body;
  }

  std::vector<VarRef> around_;  // variables of the loops around the current place
  std::vector<VarRef> lanes_;   // of those that are vectors
};

}  // namespace

Kernel accumulate_in_registers(Kernel kernel, const PassContext&) {
  kernel.body = AccumulateInRegisters()(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
