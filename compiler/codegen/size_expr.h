#pragma once

#include <optional>
#include <span>

#include "compiler/ir/expr.h"
#include "runtime/core/size_expr.h"

namespace kiln::codegen {

/// An int64 or bool expression over the scalars of a call, as the runtime evaluates it. `scalars`
/// are the sizes of the kernel, then its stride variables: the position of a variable is its
/// number.
///
/// Throws Unsupported SIZE_EXPR when it uses an operator the runtime does not know, or a float.
SizeExpr to_size_expr(const ir::Expr& expr, std::span<const ir::VarRef> scalars);

/// The number, where it does not depend on the call.
std::optional<int64_t> constant_of(const SizeExpr& expr);

}  // namespace kiln::codegen
