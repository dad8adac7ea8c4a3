#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/stmt.h"

namespace kiln::analysis {

/// `place + x*y`, stored to the place.
struct MultiplyAdd {
  ir::Expr place;
  ir::Expr x;
  ir::Expr y;
};

/// Either operand may be the place: `c + a*b` and `a*b + c` are one sum.
std::optional<MultiplyAdd> multiply_add_of(const ir::Store& store);

/// The load that a factor is, maybe converted; null for anything else.
const ir::Load* load_in(const ir::Expr& factor);

/// Whether a factor is converted to the type of the sum at once: through a narrower one it would be
/// another number.
bool is_converted(const ir::Expr& factor, DType sum);

/// How many elements lie between neighbours along a loop, which may go through several dimensions
/// by its digits; nothing when that is no constant.
std::optional<int64_t> distance(const ir::BufferRef& buffer, const std::vector<ir::Expr>& indices,
                                const ir::VarRef& var);

}  // namespace kiln::analysis
