// Ends a sum of tiles with a whole matrix instruction: what is fetched for steps beyond the end is
// zero, and is multiplied and added.
//
//   for k in 0..5 {
//     for e in 0..64 { if likely(k*64 + e < 259) { a[e] = A[k*64 + e] } } .. likewise b
//     for g in 0..4 { for t in 0..16 {
//       if likely(k*64 + g*16 + t < 259) { c = c + a[g*16 + t]*b[g*16 + t] } } } }
//     ->
//   for k in 0..5 {
//     for e in 0..64 { a[e] = if_then_else(k*64 + e < 259, A[k*64 + e], 0) } .. likewise b
//     for g in 0..4 { if likely(k*64 + g*16 < 259) { for t in 0..16 {
//       c = c + a[g*16 + t]*b[g*16 + t] } } } }
//
// A sum that began with 0 stays what it is, since 0*0 is added. Both factors have to be zero, as
// what is not there could be infinite; and all of their tile is stored in each iteration. Runs
// after fill_tiles, which takes the guards of rows and columns away, and before partition_loops,
// after which full tiles have no condition. CUTLASS's kernels fill the last steps with zeros, too.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "compiler/analysis/affine.h"
#include "compiler/analysis/divisor.h"
#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/ir/launch.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/lane_quotients.h"
#include "compiler/passes/pass_context.h"
#include "compiler/passes/tile_sums.h"

namespace kiln::passes {
namespace {

using namespace ir;

/// How the tile of a factor is stored, without the guards that say where the sum ends.
struct FilledTile {
  const Store* store = nullptr;
  std::vector<const If*> guards;  // which are gone
  Expr is_there;
};

/// Whether a statement is a store in loops and guards, and nothing beside it.
bool is_only(Stmt stmt, const Store* store) {
  while (stmt.get() != store) {
    if (const For* loop = as<For>(stmt)) {
      stmt = loop->body;
    } else if (const If* node = as<If>(stmt); node && !node->else_body) {
      stmt = node->then_body;
    } else {
      return false;
    }
  }
  return true;
}

class TileStores {
 public:
  explicit TileStores(const FoundStores& found) : found_(found) {}

  /// Nothing where the tile may not be filled so.
  std::optional<FilledTile> of(const TileSum& sum, const TileFactor& factor) const {
    const BufferRef& buffer = factor.load->buffer;
    const auto stores = found_.stores.find(buffer);
    const auto reads = found_.reads.find(buffer);
    const bool is_plain = stores != found_.stores.end() && stores->second.size() == 1 &&
                          reads != found_.reads.end() && reads->second.size() == 1;
    if (!is_plain) return std::nullopt;
    const GuardedStore& stored = stores->second[0];
    const std::vector<const For*> own = own_loops(stored, sum);
    const bool is_same = stored.conditions.empty() && !uses_loops(factor.base, own) &&
                         is_of_common(sum, factor, stored) && is_whole(stored, own);
    if (!is_same) return std::nullopt;
    const Expr& element = stored.store->indices[factor.dimension];
    FilledTile tile{stored.store, {}, is_before(sum.limit(), factor.base + element, stored.loops)};
    for (const If* guard : stored.guards) {
      if (!uses_loops(guard->condition, own)) continue;
      const Binary* order = order_of(*guard);
      const bool is_end = order != nullptr && is_only(guard, stored.store) &&
                          !uses_loops(analysis::simplify(order->a - element), own) &&
                          !uses_loops(order->b, own);
      if (!is_end) return std::nullopt;
      tile.guards.push_back(guard);
      const bool is_known = is_const(analysis::simplify(order->a - factor.base - element), 0) &&
                            is_const(analysis::simplify(order->b - sum.limit()), 0);
      if (!is_known) tile.is_there = logical_and(guard->condition, tile.is_there);
    }
    return tile.guards.empty() ? std::nullopt : std::optional(tile);
  }

 private:
  /// Whether a place is there: of neighbours that are stored at once all are, or none, where their
  /// number divides both, so that the first one says it for all.
  static Expr is_before(const Expr& limit, const Expr& place,
                        const std::vector<const For*>& loops) {
    for (const For* loop : loops) {
      const int64_t lanes = as_const_int(loop->extent).value_or(0);
      if (loop->loop_kind != LoopKind::Vectorized || lanes < 2) continue;
      const Expr apart = out_of_quotients(place, loop->var, lanes);
      const auto stride = analysis::stride_of(apart, loop->var);
      const Expr first = analysis::simplify(substitute(apart, {{loop->var, index(0)}}));
      const bool is_whole = stride == 1 && analysis::divisor_of(first) % lanes == 0 &&
                            analysis::divisor_of(limit) % lanes == 0;
      if (stride == 0 || is_whole) return less(first, limit);
    }
    return less(place, limit);
  }

  /// Loops that the sum is not in, and those over a block's threads: of one axis the innermost.
  static std::vector<const For*> own_loops(const GuardedStore& stored, const TileSum& sum) {
    std::vector<const For*> own;
    for (size_t i = 0; i < stored.loops.size(); ++i) {
      const For* loop = stored.loops[i];
      const bool is_of_threads =
          loop->loop_kind == LoopKind::ThreadIndex && is_thread_axis(loop->thread);
      const bool is_again = std::any_of(stored.loops.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                        stored.loops.end(), [&](const For* inner) {
                                          return is_of_threads && inner->thread == loop->thread &&
                                                 inner->loop_kind == LoopKind::ThreadIndex;
                                        });
      const bool is_around = std::ranges::find(sum.around, loop) != sum.around.end();
      if (is_of_threads ? !is_again : !is_around) own.push_back(loop);
    }
    return own;
  }

  static bool uses_loops(const Expr& expr, const std::vector<const For*>& loops) {
    return std::ranges::any_of(loops, [&](const For* loop) { return uses_var(expr, loop->var); });
  }

  /// Whether the sum's loops that say where its steps are stand around the store, too, and nothing
  /// else depends on them: no memory of several takes turns.
  static bool is_of_common(const TileSum& sum, const TileFactor& factor,
                           const GuardedStore& stored) {
    return std::ranges::all_of(sum.around, [&](const For* loop) {
      const bool is_around = std::ranges::find(stored.loops, loop) != stored.loops.end();
      if (!is_around) return !uses_var(factor.base, loop->var) && !uses_var(sum.limit(), loop->var);
      return loop->loop_kind != LoopKind::Serial ||
             std::ranges::none_of(factor.load->indices,
                                  [&](const Expr& index) { return uses_var(index, loop->var); });
    });
  }

  /// Whether each element is stored once: the iterations are the digits of its place.
  static bool is_whole(const GuardedStore& stored, const std::vector<const For*>& own) {
    const std::vector<Expr>& shape = stored.store->buffer->shape;
    Expr place = index(0);
    int64_t elements = 1;
    for (size_t d = 0; d < shape.size(); ++d) {
      place = place * shape[d] + stored.store->indices[d];
      elements *= as_const_int(shape[d]).value_or(0);
    }
    place = analysis::simplify(place);
    std::vector<std::pair<int64_t, int64_t>> digits;  // how far apart, and how many
    for (const For* loop : own) {
      const int64_t count = as_const_int(loop->extent).value_or(0);
      if (count != 1) digits.emplace_back(analysis::stride_of(place, loop->var).value_or(0), count);
    }
    std::ranges::sort(digits);
    int64_t all = 1;
    for (const auto& [stride, count] : digits) {
      if (stride != all) return false;
      all *= count;
    }
    return all == elements;
  }

  const FoundStores& found_;
};

class FillSteps : public Mutator {
 public:
  void add(const TileSum& sum, const FilledTile& a, const FilledTile& b) {
    sums_.emplace(sum.steps, sum.guard);
    for (const FilledTile& tile : {a, b}) {
      stores_.emplace(tile.store, tile.is_there);
      gone_.insert(tile.guards.begin(), tile.guards.end());
    }
  }

 private:
  using Mutator::visit;
  Stmt visit(const If& node) override {
    return gone_.contains(&node) ? (*this)(node.then_body) : Mutator::visit(node);
  }
  Stmt visit(const Store& store) override {
    const auto found = stores_.find(&store);
    if (found == stores_.end()) return Mutator::visit(store);
    return Store::make(store.buffer, store.indices,
                       Call::make(Operator::IfThenElse,
                                  {found->second, store.value, constant(store.value->type, 0)}));
  }
  Stmt visit(const For& loop) override {
    const auto found = sums_.find(&loop);
    if (found == sums_.end()) return Mutator::visit(loop);
    const If& guard = *found->second;
    const Expr first = substitute(order_of(guard)->a, {{loop.var, index(0)}});
    return If::make(less(analysis::simplify(first), order_of(guard)->b),
                    For::make(loop.var, loop.extent, loop.loop_kind, guard.then_body), nullptr,
                    guard.likely);
  }

  std::unordered_map<const For*, const If*> sums_;
  std::unordered_map<const Store*, Expr> stores_;
  std::unordered_set<const If*> gone_;
};

}  // namespace

Kernel fill_steps(Kernel kernel, const PassContext& context) {
  const std::vector<TileSum> sums = find_tile_sums(kernel.body, context);
  if (sums.empty()) return kernel;
  const FoundStores found = find_guarded_stores(kernel.body);
  const TileStores stores(found);
  FillSteps fill;
  bool has_any = false;
  for (const TileSum& sum : sums) {
    const auto a = stores.of(sum, sum.factors[0]);
    const auto b = stores.of(sum, sum.factors[1]);
    if (!a || !b) continue;
    fill.add(sum, *a, *b);
    has_any = true;
  }
  if (has_any) kernel.body = fill(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
