#pragma once

#include <memory>

#include <llvm/Target/TargetMachine.h>

#include "compiler/codegen/cpu_code.h"
#include "compiler/codegen/llvm_expr.h"

namespace kiln::codegen {

/// A target machine for one compile; LLVM's are not to be shared between threads.
std::unique_ptr<llvm::TargetMachine> make_target_machine(const CpuOptions& options);

/// Which accesses and arithmetic the machine's CPU has instructions for.
LaneAccess lane_access_of(const llvm::TargetMachine& machine);

}  // namespace kiln::codegen
