#pragma once

#include "compiler/ir/kernel.h"
#include "compiler/passes/pass_context.h"

namespace kiln {

/// Bounds what any pass leaves, however it came about. Throws ResourceExhausted STATEMENT_LIMIT.
void check_size(const ir::Kernel& kernel, const CompileLimits& limits);

/// The time of LLVM and of NVRTC grows with the code; nothing else bounds a nest of unrolled loops
/// and long vectors. Throws ResourceExhausted CODE_LIMIT.
void check_code(const ir::Kernel& kernel, const PassContext& context);

}  // namespace kiln
