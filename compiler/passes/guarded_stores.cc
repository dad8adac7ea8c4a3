// Which guards of a store say something of the element alone, for as long as the memory is there.
//
//   allocate s[64] { for k { for t in 0..64 { if b*64 + t < n { if k + t < l { s[t] = .. } } } } }
//     ->  the first one: b*64 + t is b*64 and once the index; of the second k changes meanwhile
#include "compiler/passes/guarded_stores.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "compiler/analysis/affine.h"
#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/lane_quotients.h"

namespace kiln::passes {
namespace {

using namespace ir;

size_t count_used(const Expr& expr, std::span<const For* const> loops) {
  return static_cast<size_t>(
      std::ranges::count_if(loops, [&](const For* loop) { return uses_var(expr, loop->var); }));
}

/// How often `index` stands in `place`, as far as one of the loops says; 0 where it does not.
int64_t stride_in(const Expr& place, const Expr& index, std::span<const For* const> loops) {
  for (const For* loop : loops) {
    if (!uses_var(index, loop->var)) continue;
    const auto own = analysis::stride_of(index, loop->var);
    const auto of_place = analysis::stride_of(place, loop->var);
    if (!own || !of_place || *own == 0) continue;
    return *of_place % *own == 0 ? *of_place / *own : 0;
  }
  return 1;
}

/// Takes from `start` what the indices of the dimensions from `first` to before `end` are of one
/// place: elements in order have places in order. Nothing where loops are left.
std::optional<Bound> of_dimensions(Bound bound, const Store& store,
                                   std::span<const For* const> loops, size_t first, size_t end) {
  analysis::Facts ranges;
  for (const For* loop : loops)
    ranges.push_range(loop->var, index(0), loop->extent);
  bound.strides.assign(store.indices.size(), 0);
  int64_t elements = 1;
  Expr taken = index(0);
  for (size_t d = end; d-- > first;) {
    const std::optional<int64_t> extent = as_const_int(store.buffer->shape[d]);
    if (!extent || reads_memory(store.indices[d])) return std::nullopt;
    bound.strides[d] = elements;
    taken = taken + store.indices[d] * elements;
    if (__builtin_mul_overflow(elements, *extent, &elements)) return std::nullopt;
  }
  bound.start = analysis::simplify(bound.start - taken, ranges);
  return count_used(bound.start, loops) == 0 ? std::optional(bound) : std::nullopt;
}

/// With neighbours that are stored at once out of quotients that are the same for all of them.
Expr without_lanes(Expr place, std::span<const For* const> loops) {
  for (const For* loop : loops) {
    const int64_t lanes = as_const_int(loop->extent).value_or(0);
    if (loop->loop_kind == LoopKind::Vectorized && lanes > 1)
      place = out_of_quotients(place, loop->var, lanes);
  }
  return place;
}

/// With its strides, from a form of the place.
std::optional<Bound> with_strides(const Bound& whole, const Store& store,
                                  std::span<const For* const> loops) {
  Bound bound = whole;
  for (const Expr& index : store.indices) {
    bound.strides.push_back(0);
    const size_t used = count_used(bound.start, loops);
    if (used == 0 || reads_memory(index)) continue;
    const int64_t stride = stride_in(bound.start, index, loops);
    const Expr rest = analysis::simplify(bound.start - index * stride);
    if (stride == 0 || count_used(rest, loops) >= used) continue;
    bound.start = rest;
    bound.strides.back() = stride;
  }
  if (count_used(bound.start, loops) == 0) return bound;
  // Several dimensions may be parts of one place: as few as do.
  for (size_t end = store.indices.size(); end > 1; --end) {
    for (size_t first = end - 1; first-- > 0;) {
      if (auto parts = of_dimensions(whole, store, loops, first, end)) return parts;
    }
  }
  return std::nullopt;
}

/// The bound that a guard is for the element of a store; `loops` are those inside the allocation.
std::optional<Bound> bound_of(const If& guard, const Store& store,
                              std::span<const For* const> loops) {
  const Binary* order = order_of(guard);
  const bool is_bound =
      order != nullptr && !reads_memory(guard.condition) && count_used(order->b, loops) == 0;
  if (!is_bound) return std::nullopt;
  Bound whole{
      .guard = &guard, .place = order->a, .limit = order->b, .start = order->a, .strides = {}};
  if (auto bound = with_strides(whole, store, loops)) return bound;
  // What waits in registers has a dimension for its neighbours.
  whole.start = without_lanes(order->a, loops);
  return with_strides(whole, store, loops);
}

class FindStores : public Visitor {
 public:
  FoundStores found;
  std::unordered_set<BufferRef> changed;  // by something else than a store

 private:
  using Visitor::visit;

  /// What stood around a buffer where it was allocated.
  struct Level {
    size_t loops = 0;
    size_t guards = 0;
  };

  void visit(const For& loop) override {
    loops_.push_back(&loop);
    Visitor::visit(loop);
    loops_.pop_back();
  }
  void visit(const If& node) override {
    (*this)(node.condition);
    guards_.push_back(&node);
    (*this)(node.then_body);
    guards_.pop_back();
    if (!node.else_body) return;
    conditions_.push_back(logical_not(node.condition));
    (*this)(node.else_body);
    conditions_.pop_back();
  }
  void visit(const Allocate& allocate) override {
    seal();
    levels_[allocate.buffer] = {loops_.size(), guards_.size()};
    (*this)(allocate.body);
  }
  void visit(const Store& store) override {
    const auto level = levels_.find(store.buffer);
    if (level == levels_.end()) {
      seal();
    } else if (store.predicate) {
      seal();
      changed.insert(store.buffer);
    } else {
      add(store, level->second);
    }
    Visitor::visit(store);
  }
  void visit(const Load& load) override {
    if (levels_.contains(load.buffer)) found.reads[load.buffer].push_back(loops_);
    Visitor::visit(load);
  }
  void visit(const Atomic& node) override {
    changed.insert(node.buffer);
    seal();
    Visitor::visit(node);
  }
  void visit(const Shuffle& node) override {
    changed.insert(node.buffer);
    seal();
    Visitor::visit(node);
  }
  void visit(const Check& node) override {
    seal();
    Visitor::visit(node);
  }
  void visit(const Barrier&) override { seal(); }
  void visit(const Await&) override { seal(); }
  void visit(const Tensorize& node) override {
    seal();
    Visitor::visit(node);
  }
  void visit(const Prefetch& node) override {
    seal();
    Visitor::visit(node);
  }

  void seal() { found.sealed.insert(found.sealed.end(), guards_.begin(), guards_.end()); }

  void add(const Store& store, const Level& level) {
    GuardedStore guarded{.store = &store,
                         .loops = loops_,
                         .guards = guards_,
                         .conditions = conditions_,
                         .bounds = {}};
    const std::span<const For* const> inside = std::span(loops_).subspan(level.loops);
    for (size_t i = level.guards; i < guards_.size(); ++i) {
      if (auto bound = bound_of(*guards_[i], store, inside)) guarded.bounds.push_back(*bound);
    }
    found.stores[store.buffer].push_back(std::move(guarded));
  }

  std::unordered_map<BufferRef, Level> levels_;
  std::vector<const For*> loops_;
  std::vector<const If*> guards_;
  std::vector<Expr> conditions_;
};

}  // namespace

const Binary* order_of(const If& guard) {
  const Binary* order = as<Binary>(guard.condition);
  const bool may_be_bound = order != nullptr && order->op == Operator::Less && guard.likely &&
                            !guard.else_body && order->a->type == kIndexType;
  return may_be_bound ? order : nullptr;
}

bool Bound::is_same(const Bound& other) const {
  return strides == other.strides && equal_trees(start, other.start) &&
         equal_trees(limit, other.limit);
}

FoundStores find_guarded_stores(const Stmt& body) {
  FindStores walk;
  walk(body);
  for (const BufferRef& buffer : walk.changed)
    walk.found.stores.erase(buffer);
  return std::move(walk.found);
}

}  // namespace kiln::passes
