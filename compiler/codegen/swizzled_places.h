#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/stmt.h"

namespace kiln::codegen {

/// A loop around an access, whose iterations may be written out, so that each has constants.
struct LoopAround {
  ir::VarRef var;
  ir::Expr extent;
  bool is_written_out = false;
};

/// Where an element of a swizzled buffer lies: S being the swizzle, at
/// S(own ^ constant) + high + behind, where no bit is in both `own` and `constant`.
///
/// A swizzle is linear over F2, so S(own ^ constant) is S(own) ^ S(constant): S(own) is computed
/// once for all places that differ by constants.
struct SwizzledPlace {
  ir::Expr own;
  ir::Expr constant;   // once loops are written out
  ir::Expr high;       // multiples of what the swizzle begins again after
  int64_t behind = 0;  // a constant of that kind
};

SwizzledPlace swizzled_place(const ir::Buffer& buffer, const ir::Expr& element,
                             const std::vector<LoopAround>& loops);

}  // namespace kiln::codegen
