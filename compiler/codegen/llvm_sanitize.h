#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include "compiler/codegen/cpu_code.h"

namespace kiln::codegen {

/// Puts the calls of a sanitizer into an optimised module. Memory on the stack is left as it is.
void sanitize(llvm::Module& module, llvm::TargetMachine& machine, Sanitizer sanitizer);

}  // namespace kiln::codegen
