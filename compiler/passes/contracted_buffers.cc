// Which memory does for what one iteration of a loop stores, and that iteration alone reads.
//
//   for i { for v in 0..32 { Z[i*32 + v] = .. }  for v in 0..32 { W[i*32 + v] = Z[i*32 + v] } }
//     ->  32 elements for each i, from Z[i*32] on
//
// The first store has all elements that others load or store, in the same iteration and by the same
// vectors, so what the other iterations did does not matter.
#include "compiler/passes/contracted_buffers.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "compiler/analysis/affine.h"
#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/mutator.h"

namespace kiln::passes {
namespace {

using namespace ir;

constexpr int64_t kMostBytes = 4096;  // of an iteration: what plan_storage leaves on the stack

bool is_step(const For& loop) {
  return loop.loop_kind == LoopKind::Vectorized || loop.loop_kind == LoopKind::Unrolled;
}

/// The loop that is no step of an iteration, right around a use; null where there is none.
const For* iteration_of(const BufferUse& use) {
  for (size_t i = use.steps; i-- > 0;)
    if (!is_step(*use.loops[i])) return use.loops[i];
  return nullptr;
}

/// Whether the loop at a depth is the same of all uses, and an unrolled one.
bool are_all_in_unrolled(const std::vector<const BufferUse*>& uses, size_t depth) {
  return std::ranges::all_of(uses, [&](const BufferUse* use) {
    return use->loops.size() > depth && use->loops[depth] == uses[0]->loops[depth] &&
           use->loops[depth]->loop_kind == LoopKind::Unrolled;
  });
}

/// Each element between the first and the last of an iteration, whose steps the loops are, and few
/// of them.
bool stores_all(const IterationSteps& steps, const BufferUse& store,
                const std::vector<const For*>& loops) {
  int64_t iterations = 1;
  for (const For* loop : loops)
    iterations *= *as_const_int(loop->extent);
  int64_t bytes = size_of(store.store->buffer->type);
  for (const int64_t extent : steps.extents) {
    bytes *= extent;
    if (bytes > kMostBytes) return false;
  }
  return iterations * size_of(store.store->buffer->type) == bytes &&
         analysis::are_distinct(store.indices, ranges_of(loops));
}

BufferRef memory_of(const Buffer& buffer, const std::vector<int64_t>& extents) {
  std::vector<Expr> shape;
  for (const int64_t extent : extents)
    shape.push_back(index(extent));
  return Buffer::make(buffer.name, buffer.type, std::move(shape), buffer.scope);
}

std::optional<Contracted> in_iteration(const Buffer& buffer, const For* around,
                                       const std::vector<const BufferUse*>& uses) {
  const BufferUse& store = *uses[0];
  if (!store.is_stored) return {};
  size_t shared = 0;  // loops that are not within an iteration
  for (size_t i = 0; i < store.loops.size(); ++i)
    if (store.loops[i] == around) shared = i + 1;
  // Unrolled loops around all of it are no steps, but iterations.
  while (are_all_in_unrolled(uses, shared))
    ++shared;
  const auto is_vector = [](const For* loop) { return loop->loop_kind == LoopKind::Vectorized; };
  if (std::any_of(store.loops.begin(), store.loops.begin() + static_cast<std::ptrdiff_t>(shared),
                  is_vector))
    return std::nullopt;
  const std::vector<const For*> loops = steps_within(store.loops, shared);
  const std::optional<IterationSteps> stored = steps_of(store.indices, loops);
  if (!stored || !stores_all(*stored, store, loops)) return std::nullopt;
  for (const BufferUse* use : uses) {
    const auto read = steps_of(use->indices, steps_within(use->loops, shared));
    const bool is_stored = read && are_equal(read->first, stored->first) &&
                           std::ranges::equal(read->extents, stored->extents, std::less_equal{});
    if (!is_stored) return std::nullopt;
  }
  return Contracted{.around = shared == 0 ? nullptr : store.loops[shared - 1],
                    .memory = memory_of(buffer, stored->extents),
                    .store = store,
                    .first = stored->first};
}

/// Whether iterations of the one stand within an iteration of the other, maybe between its store
/// and a load.
bool is_within(const Contracted& outer, const Contracted& inner) {
  return outer.around == nullptr ||
         std::ranges::find(inner.store.loops, outer.around) != inner.store.loops.end();
}

/// Whether the one stores to none of the elements of the other.
bool are_apart(const Contracted& outer, const Contracted& inner) {
  analysis::Facts facts;
  for (const For* loop : inner.store.loops)
    facts.push_range(loop->var, index(0), reads_memory(loop->extent) ? Expr() : loop->extent);
  for (size_t d = 0; d < outer.first.size(); ++d) {
    const Expr& place = inner.store.indices[d];
    const Expr end = outer.first[d] + outer.memory->shape[d];
    if (analysis::can_prove(less(place, outer.first[d]), facts) ||
        analysis::can_prove(less_equal(end, place), facts))
      return true;
  }
  return false;
}

}  // namespace

std::optional<IterationSteps> steps_of(const std::vector<Expr>& indices,
                                       const std::vector<const For*>& loops) {
  Substitution start;
  for (const For* loop : loops)
    start[loop->var] = index(0);
  IterationSteps steps;
  for (const Expr& each : indices) {
    if (each->type.lanes != 1 || reads_memory(each)) return std::nullopt;
    Expr offset = index(0);
    int64_t extent = 1;
    for (const For* loop : loops) {
      const int64_t count = as_const_int(loop->extent).value_or(0);
      const int64_t stride = analysis::stride_of(each, loop->var).value_or(-1);
      if (count < 1 || stride < 0 || count > kMostBytes || stride > kMostBytes) return std::nullopt;
      if (stride > 0) offset = offset + Expr(loop->var) * index(stride);
      extent += stride * (count - 1);
    }
    steps.first.push_back(analysis::simplify(substitute(each, start)));
    steps.offsets.push_back(analysis::simplify(offset));
    steps.extents.push_back(extent);
  }
  return steps;
}

std::vector<const For*> steps_within(const std::vector<const For*>& loops, size_t shared) {
  return {loops.begin() + static_cast<std::ptrdiff_t>(shared), loops.end()};
}

std::vector<Contracted> contracted(const Allocate& allocate) {
  const BufferRef& buffer = allocate.buffer;
  if (buffer->scope != Scope::Global || !buffer->strides.empty()) return {};
  const BufferUses all = uses_of(buffer, allocate.body);
  if (all.uses.empty() || !all.are_all()) return {};
  std::map<const For*, std::vector<const BufferUse*>> iterations;
  for (const BufferUse& use : all.uses) {
    if (use.is_guarded || (use.is_stored && use.store->predicate)) return {};
    iterations[iteration_of(use)].push_back(&use);
  }
  std::vector<Contracted> found;
  for (const auto& [around, uses] : iterations) {
    std::optional<Contracted> one = in_iteration(*buffer, around, uses);
    if (!one) return {};
    found.push_back(*std::move(one));
  }
  for (const Contracted& outer : found)
    for (const Contracted& inner : found)
      if (&outer != &inner && is_within(outer, inner) && !are_apart(outer, inner)) return {};
  return found;
}

}  // namespace kiln::passes
