#pragma once

#include <vector>

#include "compiler/ir/kernel.h"
#include "runtime/core/artifact.h"

namespace kiln::codegen {

/// The variables whose values a call brings: sizes, then strides. Their order is that of the
/// scalars of a call.
std::vector<ir::VarRef> scalars_of(const ir::Kernel& kernel);

/// The arguments as the runtime checks them.
std::vector<Parameter> parameters_of(const ir::Kernel& kernel);

/// The condition that all parameters are row-major without gaps.
SizeExpr is_compact(const std::vector<Parameter>& parameters, int64_t size_count);

/// `expr` over the scalars of the kernel; 0 for null.
SizeExpr bytes_of(const ir::Expr& expr, const ir::Kernel& kernel);

}  // namespace kiln::codegen
