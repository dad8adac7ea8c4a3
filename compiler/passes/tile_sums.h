#pragma once

#include <array>
#include <vector>

#include "compiler/ir/kernel.h"
#include "compiler/passes/guarded_stores.h"
#include "compiler/passes/pass_context.h"

namespace kiln::passes {

/// A factor of a sum, in shared memory.
struct TileFactor {
  const ir::Load* load = nullptr;
  size_t dimension = 0;  // along the sum
  ir::Expr base;         // of the sum's place: that and the element's index are one
};

/// The steps of a sum of products that one matrix instruction adds, which end with the sum.
///
///   for t in 0..16 { if likely(k*32 + t < 100) { for i { c[i] = c[i] + float32(a[i, t])*.. } } }
struct TileSum {
  const ir::For* steps = nullptr;
  const ir::If* guard = nullptr;  // place < limit
  std::vector<const ir::For*> around;
  std::array<TileFactor, 2> factors;

  const ir::Expr& place() const;
  const ir::Expr& limit() const;
};

/// Those whose factors have a matrix unit there.
std::vector<TileSum> find_tile_sums(const ir::Stmt& body, const PassContext& context);

}  // namespace kiln::passes
