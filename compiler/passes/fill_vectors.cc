// Fills the last vector at the end of an axis as all others, in memory that the kernel allocates,
// so that there is one body of unrolled code to compile and not two:
//
//   allocate s[4, 16] { .. for j in 0..4 unroll { for c in 0..16 vectorize {
//     if likely(b*16 + c < 46) { s[j, c] = s[j, c] + A[k, j]*P[b, k, c] } } } .. }
//     ->
//   the same without the guard, where P, of which the kernel has made a copy, is 0 beyond:
//   if likely(b*16 + c < 46) { P[b, k, c] = F[b*16 + c, k] }
//     ->  P[b, k, c] = if_then_else(b*16 + c < 46, F[b*16 + c, k], 0.0)
//
// Nobody reads the lanes that are new, as before, when nothing stood there: a guard says of an
// element of the buffer whether it is there, for as long as the memory is. So they may hold
// anything; but zeros take no longer than other numbers, as what lies in memory by chance may
// (denormal ones). A vector that is not full takes as long as one that is where it has as many
// registers; of others the guard stays.
//
// On a GPU fill_tiles does more of the same.
#include <algorithm>
#include <optional>
#include <unordered_set>

#include "compiler/analysis/affine.h"
#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/ir/mutator.h"
#include "compiler/ir/vector_unit.h"
#include "compiler/passes/facts_of.h"
#include "compiler/passes/guarded_stores.h"
#include "compiler/passes/pass_context.h"

namespace kiln::passes {
namespace {

using namespace ir;
using analysis::can_prove;
using analysis::Facts;

using Guards = std::unordered_set<const If*>;

/// The only store in a guard's body, within loops and other guards; null where there is more.
const Store* only_store(const Stmt& body) {
  if (const auto* loop = as<For>(body)) return only_store(loop->body);
  if (const auto* guard = as<If>(body))
    return guard->else_body ? nullptr : only_store(guard->then_body);
  return as<Store>(body);
}

const For* vector_loop(const GuardedStore& store) {
  const auto is_vector = [](const For* loop) { return loop->loop_kind == LoopKind::Vectorized; };
  const auto found = std::ranges::find_if(store.loops, is_vector);
  return found == store.loops.end() ? nullptr : *found;
}

/// What holds where a store stands, but for some guards.
Facts facts_at(const Kernel& kernel, const GuardedStore& store, const If* without) {
  Facts facts = facts_of_sizes(kernel);
  for (const For* loop : store.loops)
    facts.push_range(loop->var, index(0), loop->extent);
  for (const Expr& condition : store.conditions)
    if (!reads_memory(condition)) facts.push_condition(condition);
  for (const If* guard : store.guards)
    if (guard != without && !reads_memory(guard->condition)) facts.push_condition(guard->condition);
  return facts;
}

bool are_within(const BufferRef& buffer, const std::vector<Expr>& indices, const Facts& facts) {
  for (size_t d = 0; d < indices.size(); ++d) {
    if (reads_memory(indices[d]) || !can_prove(less_equal(index(0), indices[d]), facts) ||
        !can_prove(less(indices[d], buffer->shape[d]), facts))
      return false;
  }
  return true;
}

/// Finds the guards that may go, and those of copies that have zeros beyond.
class GuardsOfLanes {
 public:
  GuardsOfLanes(const Kernel& kernel, const VectorUnit& vectors)
      : kernel_(kernel), vectors_(vectors), found_(find_guarded_stores(kernel.body)) {
    for (const auto& [buffer, stores] : found_.stores)
      for (const Bound& bound : stores[0].bounds)
        if (try_bound(stores, bound)) break;
  }

  Guards needless;
  Guards filled;

 private:
  bool try_bound(const std::vector<GuardedStore>& stores, const Bound& bound) {
    Guards guards;
    Guards zeros;
    bool is_unrolled = false;
    for (const GuardedStore& store : stores) {
      const auto same = std::ranges::find_if(
          store.bounds, [&](const Bound& other) { return other.is_same(bound); });
      if (same == store.bounds.end() || !may_go(store, *same)) return false;
      if (!is_computable(store.store->value, store, facts_at(kernel_, store, same->guard), zeros))
        return false;
      guards.insert(same->guard);
      is_unrolled = is_unrolled || sums_unrolled(store);
    }
    if (!is_unrolled) return false;
    needless.merge(guards);
    filled.merge(zeros);
    return true;
  }

  bool is_sealed(const If* guard) const {
    return std::ranges::find(found_.sealed, guard) != found_.sealed.end();
  }

  /// Of a guard of lanes, without which the buffer has room for them, and which are as fast.
  bool may_go(const GuardedStore& store, const Bound& bound) const {
    const For* lanes = vector_loop(store);
    if (lanes == nullptr || is_sealed(bound.guard) ||
        only_store(bound.guard->then_body) != store.store)
      return false;
    const std::optional<int64_t> limit = as_const_int(bound.limit);
    return limit && analysis::stride_of(bound.place, lanes->var) == 1 &&
           analysis::stride_of(store.store->indices.back(), lanes->var) == 1 &&
           is_as_fast(store, *as_const_int(lanes->extent), *limit) &&
           are_within(store.store->buffer, store.store->indices,
                      facts_at(kernel_, store, bound.guard));
  }

  bool is_as_fast(const GuardedStore& store, int64_t lanes, int64_t limit) const {
    const int64_t bytes = size_of(store.store->buffer->type);
    const auto registers = [&](int64_t count) {
      return (count * bytes + vectors_.bytes - 1) / vectors_.bytes;
    };
    return registers(limit % lanes) == registers(lanes);
  }

  /// Whether the loops around a sum inside of the memory are written out, beside its vectors.
  static bool sums_unrolled(const GuardedStore& store) {
    const bool adds = as<Binary>(store.store->value) != nullptr;
    return adds && std::ranges::any_of(store.loops, [](const For* loop) {
             return loop->loop_kind == LoopKind::Unrolled;
           });
  }

  /// Whether what is stored can be computed of any values, and read beyond the end.
  bool is_computable(const Expr& expr, const GuardedStore& store, const Facts& facts,
                     Guards& zeros) const {
    if (const Load* load = as<Load>(expr)) {
      return !load->predicate && are_within(load->buffer, load->indices, facts) &&
             is_there(*load, store, zeros);
    }
    if (const Cast* cast = as<Cast>(expr)) {
      const bool loses = is_float(cast->value->type.element) && !is_float(cast->type.element);
      return !loses && is_computable(cast->value, store, facts, zeros);
    }
    if (const Binary* node = as<Binary>(expr)) {
      const bool is_plain = node->op == Operator::Add || node->op == Operator::Sub ||
                            node->op == Operator::Mul || node->op == Operator::Min ||
                            node->op == Operator::Max;
      return is_plain && is_computable(node->a, store, facts, zeros) &&
             is_computable(node->b, store, facts, zeros);
    }
    return as<IntImm>(expr) != nullptr || as<FloatImm>(expr) != nullptr;
  }

  /// An argument has all its elements, and so has what is stored without guards; of a copy with one
  /// guard the others are zeros then.
  bool is_there(const Load& load, const GuardedStore& reader, Guards& zeros) const {
    if (load.buffer == reader.store->buffer) return true;
    const auto stores = found_.stores.find(load.buffer);
    if (stores == found_.stores.end()) return !is_allocated(load.buffer);
    const VarRef& lane = vector_loop(reader)->var;
    if (std::ranges::none_of(load.indices,
                             [&](const Expr& place) { return uses_var(place, lane); }))
      return true;
    if (stores->second.size() != 1) return false;
    const GuardedStore& copy = stores->second[0];
    if (copy.guards.empty()) return true;
    const If* guard = copy.guards[0];
    if (copy.guards.size() != 1 || order_of(*guard) == nullptr || is_sealed(guard) ||
        reads_memory(guard->condition) || only_store(guard->then_body) != copy.store ||
        !are_within(copy.store->buffer, copy.store->indices, facts_at(kernel_, copy, guard)))
      return false;
    zeros.insert(guard);
    return true;
  }

  bool is_allocated(const BufferRef& buffer) const {
    return std::ranges::find(kernel_.parameters, buffer) == kernel_.parameters.end();
  }

  const Kernel& kernel_;
  const VectorUnit vectors_;
  const FoundStores found_;
};

class FillVectors : public Mutator {
 public:
  FillVectors(Guards needless, Guards filled)
      : needless_(std::move(needless)), filled_(std::move(filled)) {}

 private:
  using Mutator::visit;

  Stmt visit(const If& node) override {
    if (needless_.contains(&node)) return (*this)(node.then_body);
    if (!filled_.contains(&node)) return Mutator::visit(node);
    condition_ = node.condition;
    const Stmt body = (*this)(node.then_body);
    condition_ = nullptr;
    return body;
  }

  Stmt visit(const Store& store) override {
    if (!condition_) return Mutator::visit(store);
    const Expr value =
        Call::make(Operator::IfThenElse, {condition_, store.value, constant(store.value->type, 0)});
    return Store::make(store.buffer, store.indices, value);
  }

  const Guards needless_;
  const Guards filled_;
  Expr condition_;  // of the copy around
};

}  // namespace

Kernel fill_vectors(Kernel kernel, const PassContext& context) {
  GuardsOfLanes guards(kernel, vector_unit_of(context.target.arch));
  if (guards.needless.empty()) return kernel;
  kernel.body = FillVectors(std::move(guards.needless), std::move(guards.filled))(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
