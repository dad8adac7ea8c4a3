// The loop tree of a stage as a list of leaves and the relations that made them, in the order in
// which the steps came. `split(i, factor=4)` of the loops i, j:
//   i, j  ->  i.outer, i.inner, j   with the relation i = i.outer * 4 + i.inner
// As the stages of TVM's te keep it (leaf_iter_vars and relations).
#include "compiler/language/state/loops.h"

#include <algorithm>

#include "runtime/core/error.h"

namespace kiln::language {
namespace {

void replace(Loops& loops, AxisId leaf, const std::vector<AxisId>& by) {
  const size_t place = loops.place_of(leaf);
  KILN_CHECK(place < loops.leaves.size());
  const auto after = loops.leaves.erase(loops.leaves.begin() + static_cast<std::ptrdiff_t>(place));
  loops.leaves.insert(after, by.begin(), by.end());
}

void take(Loops& loops, const Relation& relation) {
  if (const auto* split = std::get_if<Split>(&relation)) {
    replace(loops, split->parent, {split->outer, split->inner});
  } else {
    const Fuse& fuse = std::get<Fuse>(relation);
    for (size_t i = 1; i < fuse.parts.size(); ++i)
      replace(loops, fuse.parts[i], {});
    replace(loops, fuse.parts[0], {fuse.fused});
  }
  loops.relations.push_back(relation);
}

void put_in_order(Loops& loops, const std::vector<AxisId>& order) {
  std::vector<size_t> places;
  for (const AxisId axis : order) {
    places.push_back(loops.place_of(axis));
    KILN_CHECK(places.back() < loops.leaves.size());
  }
  std::sort(places.begin(), places.end());
  for (size_t i = 0; i < order.size(); ++i)
    loops.leaves[places[i]] = order[i];
}

}  // namespace

AxisId made_of(const Relation& relation) {
  const auto* split = std::get_if<Split>(&relation);
  return split != nullptr ? split->parent : std::get<Fuse>(relation).fused;
}

LoopChange LoopChange::renamed(const std::function<AxisId(AxisId)>& name) const {
  LoopChange result = *this;
  for (Relation& relation : result.relations) {
    if (auto* split = std::get_if<Split>(&relation)) {
      split->parent = name(split->parent);
      split->outer = name(split->outer);
      split->inner = name(split->inner);
    } else {
      Fuse& fuse = std::get<Fuse>(relation);
      for (AxisId& part : fuse.parts)
        part = name(part);
      fuse.fused = name(fuse.fused);
    }
  }
  for (AxisId& axis : result.order)
    axis = name(axis);
  return result;
}

size_t Loops::place_of(AxisId axis) const {
  return static_cast<size_t>(std::find(leaves.begin(), leaves.end(), axis) - leaves.begin());
}

void Loops::apply(const LoopChange& change) {
  for (const Relation& relation : change.relations)
    take(*this, relation);
  put_in_order(*this, change.order);
}

void Loops::start_with(std::vector<AxisId> axes) {
  leaves = std::move(axes);
  relations.clear();
}

}  // namespace kiln::language
