// Dependences that a loop carries: two accesses of one buffer, one of them a store, that may be of
// the same element in different iterations.
//
//   for i in 0..n { C[i + 1] = C[i] }  ->  C        for i in 0..n { C[i] = C[i] + 1 }  ->  none
#include "compiler/passes/carried.h"

#include <unordered_set>

#include "compiler/analysis/affine.h"

namespace kiln::passes {

using analysis::Access;
using analysis::Place;

std::optional<std::string> carried_through(
    const ir::For& loop, analysis::Facts& facts,
    const std::function<bool(const std::vector<Access>&)>& ignores) {
  const std::vector<Access> all = analysis::accesses_of(loop.body);
  std::unordered_set<ir::BufferRef> seen;
  for (const Access& stored : all) {
    if (!stored.is_store || stored.is_own() || !seen.insert(stored.buffer).second) continue;
    std::vector<Access> same;
    std::vector<Place> places;
    for (const Access& access : all) {
      if (access.buffer != stored.buffer) continue;
      same.push_back(access);
      places.push_back(analysis::place_in(loop, access));
    }
    if (same.size() == 1 || ignores(same)) continue;
    const analysis::Overlap overlap = analysis::overlap_of(places, {loop.var}, facts);
    if (overlap.touch != analysis::Touch::Never) return stored.buffer->name;
  }
  return std::nullopt;
}

}  // namespace kiln::passes
