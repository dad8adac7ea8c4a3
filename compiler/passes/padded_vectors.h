#pragma once

#include <optional>

#include "compiler/ir/stmt.h"

namespace kiln::passes {

/// A vectorised loop whose last vector is padded: it runs for `extent` elements, those of them for
/// which `is_inside` fails reading nothing and being stored nowhere.
struct PaddedLoop {
  const ir::For* loop = nullptr;
  ir::Expr extent;
  ir::Expr is_inside;
};

/// How a vectorised loop around one update of an accumulator is padded. Nothing where that takes as
/// many vectors as an epilogue of powers of two does, where elements are too narrow for the masks
/// of most CPUs, or where what stands in the padding could do harm: what is not read counts as 0,
/// and only sums and products are made of it.
std::optional<PaddedLoop> padded_loop(const ir::For& loop, const ir::Store& update);

}  // namespace kiln::passes
