#pragma once

#include <optional>

#include "compiler/ir/launch.h"
#include "runtime/core/size_expr.h"

namespace kiln::codegen {

/// Whether all that a launch computes in int64 and uint64 are indices, and none of them, nor any
/// part of one, leaves 32 bits at any call: a GPU has no other registers, and of 64 bits a product
/// is three and a division a hundred instructions.
///
///   C[b*256 + t] = A[floordiv(b*256 + t, 37)], b < 16, t < 256    yes
///   the same where the size n bounds b                            no: n may be large
bool has_narrow_indices(const ir::LaunchNest& nest, const ir::HostLoops& around);

/// Of a kernel whose launches have not all narrow indices at any call: the calls at which they
/// have, as a condition on its scalars. None where nothing says which, or it would take long to
/// tell.
std::optional<SizeExpr> where_indices_are_narrow(const ir::Kernel& kernel);

}  // namespace kiln::codegen
