#pragma once

#include <memory>

#include <llvm/Target/TargetMachine.h>

#include "compiler/codegen/cpu_code.h"

namespace kiln::codegen {

/// A target machine for one compile; LLVM's are not to be shared between threads.
std::unique_ptr<llvm::TargetMachine> make_target_machine(const CpuOptions& options);

}  // namespace kiln::codegen
