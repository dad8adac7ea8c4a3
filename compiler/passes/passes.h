#pragma once

#include "compiler/ir/kernel.h"
#include "compiler/lower.h"

/// All passes, one .cc each, in the order of lower.cc. The contract of each stands here.
///
/// Every pass is a pure function `ir::Kernel pass(ir::Kernel kernel, const PassContext& context)`.
namespace kiln::passes {}  // namespace kiln::passes
