#pragma once

#include "compiler/ir/kernel.h"
#include "compiler/passes/pass_context.h"

namespace kiln::passes {

/// The pass, for those that leave a kernel simplified.
ir::Kernel simplify(ir::Kernel kernel, const PassContext& context);

}  // namespace kiln::passes
