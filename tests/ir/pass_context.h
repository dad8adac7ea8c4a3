#pragma once

#include "compiler/passes/passes.h"

namespace kiln::testing {

/// Runs a pass that asks nothing of its context.
inline ir::Kernel run_pass(ir::Kernel (*pass)(ir::Kernel, const PassContext&), ir::Kernel kernel) {
  const Target target;
  const CompileOptions options;
  return pass(std::move(kernel), PassContext{target, options});
}

}  // namespace kiln::testing
