#pragma once

#include <vector>

#include "compiler/analysis/affine.h"
#include "compiler/ir/stmt.h"

namespace kiln::passes {

/// An element that a statement names, with the loops around it.
struct BufferUse {
  std::vector<ir::Expr> indices;
  std::vector<const ir::For*> loops;
  size_t steps = 0;  // from this loop on they are those of a matrix unit: all at once
  const ir::Store* store = nullptr;  // that it is the target of, or is loaded for
  bool is_stored = false;
  bool is_guarded = false;
};

/// What a statement does with a buffer.
struct BufferUses {
  std::vector<BufferUse> uses;  // in the order of the text
  int named = 0;                // by whatever node
  /// Whether all that names the buffer are loads and stores.
  bool are_all() const { return named == static_cast<int>(uses.size()); }
};

BufferUses uses_of(const ir::BufferRef& buffer, const ir::Stmt& stmt);

bool are_equal(const std::vector<ir::Expr>& a, const std::vector<ir::Expr>& b);

std::vector<analysis::LoopRange> ranges_of(const std::vector<const ir::For*>& loops);

}  // namespace kiln::passes
