// Compares guards with bounds by what they say of an element: its place, made of the indices by
// which it is read, is as far from the bound as the guard's left side is from its right one.
#include "compiler/passes/filled_rows.h"

#include <algorithm>

#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/ir/mutator.h"

namespace kiln::passes {

using namespace ir;

std::vector<Bound> bounds_of_copy(const GuardedStore& store, const FilledRows& filled) {
  std::vector<Bound> result;
  const Load* load = as<Load>(store.store->value);
  const auto found = load == nullptr ? filled.end() : filled.find(load->buffer);
  if (found == filled.end()) return result;
  analysis::Facts ranges;
  for (const For* loop : store.loops)
    ranges.push_range(loop->var, index(0), loop->extent);
  for (const Bound& bound : found->second) {
    Expr place = bound.start;
    for (size_t d = 0; d < load->indices.size(); ++d)
      place = place + load->indices[d] * bound.strides[d];
    for (const If* guard : store.guards) {
      const Binary* order = order_of(*guard);
      if (order == nullptr) continue;
      const Expr apart = (place - order->a) - (bound.limit - order->b);
      if (!is_const(analysis::simplify(apart, ranges), 0)) continue;
      result.push_back(
          {.guard = guard, .place = order->a, .limit = order->b, .start = {}, .strides = {}});
    }
  }
  return result;
}

bool serves_one_iteration(const GuardedStore& store, const If& guard, const FoundStores& found) {
  // Threads are all at once: each reads what others have stored.
  const auto loop = std::ranges::find_if(store.loops, [&](const For* each) {
    return each->loop_kind != LoopKind::ThreadIndex && uses_var(guard.condition, each->var);
  });
  const auto reads = found.reads.find(store.store->buffer);
  if (loop == store.loops.end() || reads == found.reads.end()) return true;
  return std::ranges::all_of(reads->second, [&](const std::vector<const For*>& around) {
    return std::ranges::find(around, *loop) != around.end();
  });
}

}  // namespace kiln::passes
