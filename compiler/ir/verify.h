#pragma once

#include "compiler/ir/kernel.h"

namespace kiln::ir {

/// Checks what every pass promises: variables bound before use, types and lanes that fit, no Reduce
/// or TensorRead, buffers allocated or parameters, ranks that fit. A breach is our bug: Internal.
void verify(const Kernel& kernel);

}  // namespace kiln::ir
