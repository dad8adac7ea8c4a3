// Fills tiles at the end of an axis as all others: guards go that say of an element of memory that
// the kernel allocates whether it is there.
//
//   allocate s[64] { if likely(b*64 + t < n) { s[t] = A[b*64 + t] } .. }
//     ->
//   allocate s[64] { if likely(0 < n) { s[t] = A[min(b*64 + t, n - 1)] } .. }
//
// What stands there is not read by anybody who needs it, as before: sums of elements that are not
// there are added up, and not stored at the end; what is fetched for them is the last element that
// is there, also where its place is one of several axes:
//
//   if likely(p < 98) { s[t] = X[p / 49, p / 7 % 7, p % 7] }
//     ->
//   s[t] = X[min(p, 97) / 49, min(p, 97) / 7 % 7, min(p, 97) % 7]
//
// A guard goes where all stores to the buffer have it, and what is stored can be computed anyhow.
// Guards stay around what cannot be computed of any values, and those that change while the memory
// is there. cuBLAS's and CUTLASS's kernels clamp and predicate so.
//
// A tensor in global memory whose rows are longer than what is in them is filled to their ends in
// the same way, and read as it lies by what copies it then (filled_rows.h): beyond its end, too.
// What copies it needs no guard for that, even one that changes, where all that is copied in an
// iteration is read in the same one.
#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <unordered_set>

#include "compiler/analysis/affine.h"
#include "compiler/analysis/divisor.h"
#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/facts_of.h"
#include "compiler/passes/filled_rows.h"
#include "compiler/passes/guarded_stores.h"
#include "compiler/passes/lane_quotients.h"
#include "compiler/passes/pass_context.h"

namespace kiln::passes {
namespace {

using namespace ir;
using analysis::can_prove;
using analysis::Facts;

using Guards = std::unordered_set<const If*>;
using CopiesAsTheyLie = std::unordered_map<const Load*, Guards>;

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

/// Puts something in the place of each tree that is equal to one of some.
class ReplaceTrees : public Mutator {
 public:
  struct Row {
    Expr tree;
    Expr instead;
    bool is_found = false;
  };
  explicit ReplaceTrees(std::vector<Row> rows) : rows(std::move(rows)) {}

  std::vector<Row> rows;

 private:
  using Mutator::visit;
  Expr visit(const Var& node) override { return replaced(node); }
  Expr visit(const Binary& node) override { return replaced(node); }

  template <typename Node>
  Expr replaced(const Node& node) {
    for (Row& row : rows) {
      if (!equal_trees(row.tree, &node)) continue;
      row.is_found = true;
      return row.instead;
    }
    return Mutator::visit(node);
  }
};

/// Whether a store may run without some of its guards.
class Computable {
 public:
  Computable(const Kernel& kernel, const GuardedStores& stores, const GuardedStore& store,
             const std::vector<Bound>& dropped)
      : stores_(stores), facts_(facts_of_sizes(kernel)) {
    if (!store.loops.empty()) changed_(store.loops[0]->body);
    for (const For* loop : store.loops)
      facts_.push_range(loop->var, index(0), loop->extent);
    for (const Expr& condition : store.conditions)
      add(condition);
    for (const If* guard : store.guards) {
      if (std::ranges::none_of(dropped, [&](const Bound& bound) { return bound.guard == guard; }))
        add(guard->condition);
    }
    std::vector<ReplaceTrees::Row> rows;
    for (const Bound& bound : dropped) {
      if (!can_prove(less_equal(index(0), bound.place), facts_)) continue;
      // Some place that is there.
      VarRef place = Var::make("place");
      facts_.push_range(place, index(0), bound.limit);
      rows.push_back({bound.place, place});
    }
    clamped_ = std::make_unique<ReplaceTrees>(std::move(rows));
  }

  /// Whether it is in memory without its places being others.
  bool is_in_memory(const Load& load) { return are_within(load.buffer, load.indices); }

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
    if (const Call* call = as<Call>(expr)) {
      return call->op == Operator::Tf32 ? is_computable(call->args[0])
                                        : is_computable_choice(*call);
    }
    return as<IntImm>(expr) != nullptr || as<FloatImm>(expr) != nullptr || as<Var>(expr) != nullptr;
  }

  /// Of padding: what is read where a condition on its place holds.
  bool is_computable_choice(const Call& call) {
    if (call.op != Operator::IfThenElse || reads_memory(call.args[0])) return false;
    const Facts before = facts_;
    facts_.push_condition((*clamped_)(call.args[0]));
    const bool is_first = is_computable(call.args[1]);
    facts_ = before;
    return is_first && is_computable(call.args[2]);
  }

  bool is_readable(const Load& load) {
    if (load.predicate) return false;
    if (load.buffer->scope != Scope::Global)
      return stores_.contains(load.buffer) && are_within(load.buffer, load.indices);
    // The last element that is there may be that of another thread.
    if (changed_.found.contains(load.buffer)) return false;
    for (size_t d = 0; d < load.indices.size(); ++d) {
      if (reads_memory(load.indices[d])) return false;
      if (!is_within((*clamped_)(load.indices[d]), load.buffer->shape[d])) return false;
    }
    return true;
  }

  const GuardedStores& stores_;
  Facts facts_;
  std::unique_ptr<ReplaceTrees> clamped_;
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
  NeedlessGuards(const Kernel& kernel, const FoundStores& found, const FilledRows& filled)
      : stores_(found.stores) {
    needed_.insert(found.sealed.begin(), found.sealed.end());
    for (const auto& [buffer, stores] : stores_) {
      for (const GuardedStore& store : stores) {
        Candidate& candidate = candidates_.emplace_back();
        candidate.store = &store;
        candidate.common = common_bounds(store, stores);
        // What the buffer has no room for in one dimension keeps the guards of that one alone.
        if (buffer->scope == Scope::Global) {
          std::erase_if(candidate.common, [&](const Bound& bound) {
            return !Computable(kernel, stores_, store, {bound}).result(*store.store);
          });
        }
        const std::vector<Bound> copied = bounds_of_copy(store, filled);
        std::vector<Bound> dropped = candidate.common;
        std::ranges::copy_if(copied, std::back_inserter(dropped), [&](const Bound& bound) {
          return serves_one_iteration(store, *bound.guard, found);
        });
        Computable computable(kernel, stores_, store, dropped);
        const bool is_computable = computable.result(*store.store);
        if (!copied.empty() && is_computable) {
          const Load& load = *as<Load>(store.store->value);
          if (computable.is_in_memory(load)) add_guards(copied, as_they_lie_[&load]);
        }
        for (const If* guard : store.guards) {
          if (!is_computable || !has(dropped, guard)) needed_.insert(guard);
        }
        if (is_computable) dropped_.insert(dropped_.end(), dropped.begin(), dropped.end());
      }
    }
    while (keep_what_reads_guarded()) {
    }
  }

  Guards result() const {
    Guards needless;
    for (const Bound& bound : dropped_) {
      if (!needed_.contains(bound.guard)) needless.insert(bound.guard);
    }
    return needless;
  }

  /// Copies that read beyond what these guards say is there.
  const CopiesAsTheyLie& as_they_lie() const { return as_they_lie_; }

  FilledRows filled() const {
    FilledRows filled;
    for (const auto& [buffer, stores] : stores_) {
      if (buffer->scope != Scope::Global || stores.size() != 1) continue;
      for (const Bound& bound : stores[0].bounds)
        if (!needed_.contains(bound.guard)) filled[buffer].push_back(bound);
    }
    return filled;
  }

 private:
  struct Candidate {
    const GuardedStore* store = nullptr;
    std::vector<Bound> common;
  };

  static void add_guards(const std::vector<Bound>& bounds, Guards& guards) {
    for (const Bound& bound : bounds)
      guards.insert(bound.guard);
  }

  static bool has(const std::vector<Bound>& bounds, const If* guard) {
    return std::ranges::any_of(bounds, [&](const Bound& bound) { return bound.guard == guard; });
  }

  /// How many guards with this limit a store keeps that say which elements another one may read,
  /// whatever they are bounds of. What changes with the iterations that both are in, as steps of a
  /// sum, bounds these for both.
  int64_t kept_guards(const GuardedStore& store, const GuardedStore& other,
                      const Expr& limit) const {
    const auto changes = [&](const If* guard) {
      return !has(store.bounds, guard) && std::ranges::any_of(store.loops, [&](const For* loop) {
        return loop->loop_kind == LoopKind::Serial && uses_var(guard->condition, loop->var) &&
               std::ranges::find(other.loops, loop) != other.loops.end();
      });
    };
    return std::ranges::count_if(store.guards, [&](const If* guard) {
      const Binary* order = as<Binary>(guard->condition);
      return needed_.contains(guard) && order != nullptr && order->op == Operator::Less &&
             equal_trees(order->b, limit) && !changes(guard);
    });
  }

  /// Beyond the end nobody has stored what is still guarded, so that nobody may read it there.
  bool keep_what_reads_guarded() {
    std::unordered_set<BufferRef> guarded;
    for (const Candidate& candidate : candidates_) {
      for (const Bound& bound : candidate.common) {
        const BufferRef& buffer = candidate.store->store->buffer;
        if (buffer->scope != Scope::Global && needed_.contains(bound.guard)) guarded.insert(buffer);
      }
    }
    const size_t before = needed_.size();
    for (const Candidate& candidate : candidates_) {
      ReadBuffers reads;
      reads(candidate.store->store->value);
      const auto is_guarded = [&](const BufferRef& buffer) {
        if (buffer->scope == Scope::Global) return false;  // what is not there is not read of it
        if (guarded.contains(buffer)) return true;
        const auto stores = stores_.find(buffer);
        if (stores == stores_.end()) return false;
        return std::ranges::any_of(stores->second, [&](const GuardedStore& store) {
          return std::ranges::any_of(candidate.common, [&](const Bound& bound) {
            return kept_guards(store, *candidate.store, bound.limit) >
                   kept_guards(*candidate.store, store, bound.limit);
          });
        });
      };
      if (std::ranges::none_of(reads.found, is_guarded)) continue;
      for (const Bound& bound : candidate.common)
        needed_.insert(bound.guard);
    }
    return needed_.size() > before;
  }

  const GuardedStores& stores_;
  std::vector<Candidate> candidates_;
  std::vector<Bound> dropped_;  // where nothing else needs their guards
  CopiesAsTheyLie as_they_lie_;
  Guards needed_;
};

class FillTiles : public Mutator {
 public:
  FillTiles(Guards needless, const CopiesAsTheyLie& as_they_lie)
      : needless_(std::move(needless)), as_they_lie_(as_they_lie) {}

 private:
  using Mutator::visit;

  Stmt visit(const If& node) override {
    if (!needless_.contains(&node)) return Mutator::visit(node);
    const Binary& order = *as<Binary>(node.condition);
    guards_.push_back({&node, order.a, order.b});
    Stmt body = (*this)(node.then_body);
    const Guard guard = guards_.back();
    guards_.pop_back();
    // Of no element at all there is no last one.
    if (!guard.is_used || as_const_int(guard.limit)) return body;
    return If::make(less(index(0), guard.limit), std::move(body), nullptr, true);
  }

  Stmt visit(const For& loop) override {
    const bool is_vector = loop.loop_kind == LoopKind::Vectorized;
    if (is_vector) vectors_.push_back(&loop);
    const Stmt result = Mutator::visit(loop);
    if (is_vector) vectors_.pop_back();
    return result;
  }

  Expr visit(const Load& load) override {
    if (load.buffer->scope != Scope::Global || guards_.empty()) return Mutator::visit(load);
    const auto as_it_lies = as_they_lie_.find(&load);
    const Guards without = as_it_lies == as_they_lie_.end() ? Guards() : as_it_lies->second;
    std::vector<Expr> indices;
    for (const Expr& place : load.indices)
      indices.push_back(clamped(place, without));
    return indices == load.indices ? Expr(&load) : Load::make(load.buffer, std::move(indices));
  }

  /// Of padding, whose condition says which elements are read.
  Expr visit(const Call& call) override {
    if (call.op != Operator::IfThenElse || guards_.empty()) return Mutator::visit(call);
    return Call::make(call.op,
                      {clamped(call.args[0]), (*this)(call.args[1]), (*this)(call.args[2])});
  }

  /// With the places of the guards around, which are gone, that are there; but for those of some.
  Expr clamped(const Expr& expr, const Guards& without = {}) {
    std::vector<ReplaceTrees::Row> rows;
    for (const Guard& guard : guards_)
      rows.push_back({guard.place, without.contains(guard.node)
                                       ? guard.place
                                       : clamped(guard.place, guard.limit)});
    ReplaceTrees replace(std::move(rows));
    Expr result = replace(expr);
    for (size_t i = 0; i < guards_.size(); ++i)
      guards_[i].is_used = guards_[i].is_used || replace.rows[i].is_found;
    return result;
  }

  /// Neighbours stay neighbours where either all of them are there or none.
  Expr clamped(const Expr& place, const Expr& limit) const {
    for (const For* loop : vectors_) {
      const int64_t lanes = as_const_int(loop->extent).value_or(0);
      if (lanes < 2) continue;
      const Expr apart = out_of_quotients(place, loop->var, lanes);
      if (analysis::stride_of(apart, loop->var) != 1) continue;
      const Expr first = analysis::simplify(substitute(apart, {{loop->var, index(0)}}));
      const bool is_whole =
          analysis::divisor_of(first) % lanes == 0 && analysis::divisor_of(limit) % lanes == 0;
      if (is_whole) return min(first, limit - lanes) + Expr(loop->var);
    }
    return min(place, limit - 1);
  }

  const Guards needless_;
  const CopiesAsTheyLie& as_they_lie_;
  struct Guard {
    const If* node;
    Expr place;
    Expr limit;
    bool is_used = false;
  };
  std::vector<Guard> guards_;        // around, which are gone
  std::vector<const For*> vectors_;  // around
};

}  // namespace

Kernel fill_tiles(Kernel kernel, const PassContext&) {
  const FoundStores found = find_guarded_stores(kernel.body);
  std::optional<NeedlessGuards> guards(std::in_place, kernel, found, FilledRows());
  // What copies filled rows needs fewer.
  if (const FilledRows filled = guards->filled(); !filled.empty())
    guards.emplace(kernel, found, filled);
  Guards needless = guards->result();
  if (needless.empty()) return kernel;
  kernel.body = FillTiles(std::move(needless), guards->as_they_lie())(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
