#pragma once

#include <span>
#include <vector>

#include "compiler/ir/stmt.h"

namespace kiln::schedule {

/// Where a reduction accumulates one of its values.
struct Accumulator {
  ir::BufferRef buffer;
  std::vector<ir::Expr> indices;
};

/// Combines the accumulated values of a reduction with the next ones. All results are computed from
/// the values as they were:
///
///   lo[i], hi[i] = hi[i], lo[i]
///     ->
///   allocate lo.next: float32[] scope(local) {
///     lo.next[] = hi[i]
///     hi[i] = lo[i]
///     lo[i] = lo.next[]
///   }
ir::Stmt combine_values(const ir::Combination& how, std::span<const Accumulator> accumulators,
                        const std::vector<ir::Expr>& sources);

}  // namespace kiln::schedule
