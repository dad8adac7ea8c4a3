#pragma once

#include <unordered_map>
#include <vector>

#include "compiler/passes/guarded_stores.h"

namespace kiln::passes {

/// Bounds of elements of global memory beyond which there is something, too: the rows of a tensor
/// are longer than what is in them, and what fills it does so to their ends.
using FilledRows = std::unordered_map<ir::BufferRef, std::vector<Bound>>;

/// The guards of a store that copies such a buffer that say of what it copies whether it is within
/// one of the bounds.
///
///   R[i, l, p] filled from l*64 + p = 100 on:
///   if likely(k*64 + t < 36) { s[t] = R[0, k + 1, t] }  ->  that guard
std::vector<Bound> bounds_of_copy(const GuardedStore& store, const FilledRows& filled);

/// Whether what is stored behind the guard is read in the same iteration of the loops that the
/// guard depends on, or never: then nobody needs what stood in the place of an element that is not
/// there.
bool serves_one_iteration(const GuardedStore& store, const ir::If& guard, const FoundStores& found);

}  // namespace kiln::passes
