#pragma once

#include <unordered_map>
#include <vector>

#include "compiler/ir/kernel.h"

namespace kiln::passes {

/// A condition `place < limit` that says of an element whether it is there.
struct Bound {
  const ir::If* guard = nullptr;
  ir::Expr place;  // the left side of the condition
  ir::Expr limit;
  // `place` is `start` and `strides` times the indices of the element; `start` and `limit` stay the
  // same while the buffer is there.
  ir::Expr start;
  std::vector<int64_t> strides;

  /// Whether both hold of the same elements.
  bool is_same(const Bound& other) const;
};

/// A store to memory that the kernel allocates, and what stands around it.
struct GuardedStore {
  const ir::Store* store = nullptr;
  std::vector<const ir::For*> loops;  // outermost first
  std::vector<const ir::If*> guards;  // likewise; `likely` ones and others
  std::vector<ir::Expr> conditions;   // of branches taken that are no guards
  std::vector<Bound> bounds;          // by guards inside of the allocation
};

/// All stores to buffers that the kernel allocates, by buffer; none of a buffer that something else
/// changes.
using GuardedStores = std::unordered_map<ir::BufferRef, std::vector<GuardedStore>>;

/// `reads` has the loops around each load from such a buffer, outermost first; `sealed` are the
/// guards around more than stores, loops and other guards.
struct FoundStores {
  GuardedStores stores;
  std::unordered_map<ir::BufferRef, std::vector<std::vector<const ir::For*>>> reads;
  std::vector<const ir::If*> sealed;
};
/// The condition of a guard that may be a bound, `place < limit`; null where it is something else.
const ir::Binary* order_of(const ir::If& guard);

FoundStores find_guarded_stores(const ir::Stmt& body);

}  // namespace kiln::passes
