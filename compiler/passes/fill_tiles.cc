// Fills tiles at the end of an axis as all others: guards go that say of an element of shared or
// local memory whether it is there.
//
//   allocate s[64] { if likely(b*64 + t < n) { s[t] = A[b*64 + t] } .. }
//     ->
//   allocate s[64] { if likely(0 < n) { s[t] = A[min(b*64 + t, n - 1)] } .. }
//
// What stands there is not read by anybody who needs it, as before. Guards stay around what cannot
// be computed of any values, and those that change while the memory is there.
//
// Tiles at the end of an axis are filled as all others are. What stands in a tile beyond the end is
// never read by anybody who needs it, so that what a guard keeps from it is time alone: sums of
// elements that are not there are added up, and not stored at the end; what is fetched for them is
// the last element that is there.
//
//   allocate s[64] { if b*64 + t < n { s[t] = A[b*64 + t] } .. }
//     ->
//   allocate s[64] { s[t] = A[min(b*64 + t, n - 1)] .. }
//
// A guard goes where it says of an element whether it is there, all stores to the buffer have it,
// and what is stored can be computed anyhow. cuBLAS's and CUTLASS's kernels clamp and predicate so.
#include <algorithm>
#include <optional>
#include <unordered_set>

#include "compiler/analysis/affine.h"
#include "compiler/analysis/divisor.h"
#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/facts_of.h"
#include "compiler/passes/guarded_stores.h"
#include "compiler/passes/pass_context.h"

namespace kiln::passes {
namespace {

using namespace ir;
using analysis::can_prove;
using analysis::Facts;

using Guards = std::unordered_set<const If*>;

/// What a statement stores to, in memory that others see.
class StoredBuffers : public Visitor {
 public:
  std::unordered_set<BufferRef> found;

 private:
  using Visitor::visit;
  void visit(const Store& store) override {
    if (store.buffer->scope == Scope::Global) found.insert(store.buffer);
    Visitor::visit(store);
  }
  void visit(const Atomic& node) override {
    found.insert(node.buffer);
    Visitor::visit(node);
  }
};

/// Whether a store may run without some of its guards.
class Computable {
 public:
  Computable(const Kernel& kernel, const GuardedStores& stores, const GuardedStore& store,
             const std::vector<Bound>& dropped)
      : stores_(stores), dropped_(dropped), facts_(facts_of_sizes(kernel)) {
    if (!store.loops.empty()) changed_(store.loops[0]->body);
    for (const For* loop : store.loops)
      facts_.push_range(loop->var, index(0), loop->extent);
    for (const Expr& condition : store.conditions)
      add(condition);
    for (const If* guard : store.guards) {
      if (std::ranges::none_of(dropped, [&](const Bound& bound) { return bound.guard == guard; }))
        add(guard->condition);
    }
  }

  bool result(const Store& store) {
    return are_within(store.buffer, store.indices) && is_computable(store.value);
  }

 private:
  void add(const Expr& condition) {
    if (!reads_memory(condition)) facts_.push_condition(condition);
  }

  bool is_within(const Expr& place, const Expr& extent) {
    return can_prove(less_equal(index(0), place), facts_) && can_prove(less(place, extent), facts_);
  }
  bool are_within(const BufferRef& buffer, const std::vector<Expr>& indices) {
    for (size_t d = 0; d < indices.size(); ++d) {
      if (reads_memory(indices[d]) || !is_within(indices[d], buffer->shape[d])) return false;
    }
    return true;
  }

  /// Arithmetic that is defined for all values; of what is not there, nobody knows them.
  bool is_computable(const Expr& expr) {
    if (const Load* load = as<Load>(expr)) return is_readable(*load);
    if (const Cast* cast = as<Cast>(expr)) {
      const bool loses = is_float(cast->value->type.element) && !is_float(cast->type.element);
      return !loses && is_computable(cast->value);
    }
    if (const Binary* node = as<Binary>(expr)) {
      const bool is_plain = node->op == Operator::Add || node->op == Operator::Sub ||
                            node->op == Operator::Mul || node->op == Operator::Min ||
                            node->op == Operator::Max;
      return is_plain && is_computable(node->a) && is_computable(node->b);
    }
    return as<IntImm>(expr) != nullptr || as<FloatImm>(expr) != nullptr || as<Var>(expr) != nullptr;
  }

  bool is_readable(const Load& load) {
    if (load.predicate) return false;
    if (load.buffer->scope != Scope::Global)
      return stores_.contains(load.buffer) && are_within(load.buffer, load.indices);
    // The last element that is there may be that of another thread.
    if (changed_.found.contains(load.buffer)) return false;
    for (size_t d = 0; d < load.indices.size(); ++d) {
      if (reads_memory(load.indices[d])) return false;
      const Bound* bound = bound_at(load.indices[d]);
      const Expr& extent = load.buffer->shape[d];
      const bool is_clamped = bound != nullptr &&
                              can_prove(less_equal(index(0), load.indices[d]), facts_) &&
                              can_prove(less_equal(bound->limit, extent), facts_);
      if (!is_clamped && !is_within(load.indices[d], extent)) return false;
    }
    return true;
  }

  const Bound* bound_at(const Expr& place) const {
    const auto found = std::ranges::find_if(
        dropped_, [&](const Bound& bound) { return equal_trees(bound.place, place); });
    return found == dropped_.end() ? nullptr : &*found;
  }

  const GuardedStores& stores_;
  const std::vector<Bound>& dropped_;
  Facts facts_;
  StoredBuffers changed_;  // by the loops around
};

/// The bounds of a store that each other store to the buffer has, too.
std::vector<Bound> common_bounds(const GuardedStore& store,
                                 const std::vector<GuardedStore>& stores) {
  std::vector<Bound> common;
  for (const Bound& bound : store.bounds) {
    const auto has_it = [&](const GuardedStore& other) {
      return std::ranges::any_of(other.bounds,
                                 [&](const Bound& its) { return its.is_same(bound); });
    };
    if (std::ranges::all_of(stores, has_it)) common.push_back(bound);
  }
  return common;
}

/// The buffers that an expression reads.
class ReadBuffers : public Visitor {
 public:
  std::unordered_set<BufferRef> found;

 private:
  void element(const BufferRef& buffer, const std::vector<Expr>& indices) override {
    found.insert(buffer);
    Visitor::element(buffer, indices);
  }
};

/// Finds the guards without which all that stands in them can run.
class NeedlessGuards {
 public:
  NeedlessGuards(const Kernel& kernel, const FoundStores& found) : stores_(found.stores) {
    needed_.insert(found.sealed.begin(), found.sealed.end());
    for (const auto& [buffer, stores] : stores_) {
      for (const GuardedStore& store : stores) {
        Candidate& candidate = candidates_.emplace_back();
        candidate.store = &store;
        candidate.common = common_bounds(store, stores);
        const bool is_computable =
            Computable(kernel, stores_, store, candidate.common).result(*store.store);
        for (const If* guard : store.guards) {
          if (!is_computable || !has(candidate.common, guard)) needed_.insert(guard);
        }
      }
    }
    while (keep_what_reads_guarded()) {
    }
  }

  Guards result() const {
    Guards needless;
    for (const Candidate& candidate : candidates_) {
      for (const Bound& bound : candidate.common) {
        if (!needed_.contains(bound.guard)) needless.insert(bound.guard);
      }
    }
    return needless;
  }

 private:
  struct Candidate {
    const GuardedStore* store = nullptr;
    std::vector<Bound> common;
  };

  static bool has(const std::vector<Bound>& bounds, const If* guard) {
    return std::ranges::any_of(bounds, [&](const Bound& bound) { return bound.guard == guard; });
  }

  /// Beyond the end nobody has stored what is still guarded, so that nobody may read it there.
  bool keep_what_reads_guarded() {
    std::unordered_set<BufferRef> guarded;
    for (const Candidate& candidate : candidates_) {
      for (const Bound& bound : candidate.common) {
        if (needed_.contains(bound.guard)) guarded.insert(candidate.store->store->buffer);
      }
    }
    const size_t before = needed_.size();
    for (const Candidate& candidate : candidates_) {
      ReadBuffers reads;
      reads(candidate.store->store->value);
      const auto is_guarded = [&](const BufferRef& buffer) { return guarded.contains(buffer); };
      if (std::ranges::none_of(reads.found, is_guarded)) continue;
      for (const Bound& bound : candidate.common)
        needed_.insert(bound.guard);
    }
    return needed_.size() > before;
  }

  const GuardedStores& stores_;
  std::vector<Candidate> candidates_;
  Guards needed_;
};

class FillTiles : public Mutator {
 public:
  explicit FillTiles(Guards needless) : needless_(std::move(needless)) {}

 private:
  using Mutator::visit;

  struct Clamp {
    Expr place;
    Expr limit;
    bool is_used = false;
  };

  Stmt visit(const If& node) override {
    if (!needless_.contains(&node)) return Mutator::visit(node);
    const Binary& order = *as<Binary>(node.condition);
    clamps_.push_back({order.a, order.b});
    Stmt body = (*this)(node.then_body);
    const Clamp clamp = clamps_.back();
    clamps_.pop_back();
    // Of no element at all there is no last one.
    if (!clamp.is_used || as_const_int(clamp.limit)) return body;
    return If::make(less(index(0), clamp.limit), std::move(body), nullptr, true);
  }

  Stmt visit(const For& loop) override {
    const bool is_vector = loop.loop_kind == LoopKind::Vectorized;
    if (is_vector) vectors_.push_back(&loop);
    const Stmt result = Mutator::visit(loop);
    if (is_vector) vectors_.pop_back();
    return result;
  }

  Expr visit(const Load& load) override {
    if (load.buffer->scope != Scope::Global) return Mutator::visit(load);
    std::vector<Expr> indices = load.indices;
    for (Expr& place : indices) {
      for (Clamp& clamp : clamps_) {
        if (!equal_trees(clamp.place, place)) continue;
        place = clamped(place, clamp.limit);
        clamp.is_used = true;
        break;
      }
    }
    return indices == load.indices ? Expr(&load) : Load::make(load.buffer, std::move(indices));
  }

  /// Neighbours stay neighbours where either all of them are there or none.
  Expr clamped(const Expr& place, const Expr& limit) const {
    for (const For* loop : vectors_) {
      const int64_t lanes = as_const_int(loop->extent).value_or(0);
      if (lanes < 2 || analysis::stride_of(place, loop->var) != 1) continue;
      const Expr first = analysis::simplify(substitute(place, {{loop->var, index(0)}}));
      const bool is_whole =
          analysis::divisor_of(first) % lanes == 0 && analysis::divisor_of(limit) % lanes == 0;
      if (is_whole) return min(first, limit - lanes) + Expr(loop->var);
    }
    return min(place, limit - 1);
  }

  const Guards needless_;
  std::vector<Clamp> clamps_;        // of the guards around that are gone
  std::vector<const For*> vectors_;  // around
};

}  // namespace

Kernel fill_tiles(Kernel kernel, const PassContext&) {
  const FoundStores found = find_guarded_stores(kernel.body);
  Guards needless = NeedlessGuards(kernel, found).result();
  if (!needless.empty()) kernel.body = FillTiles(std::move(needless))(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
