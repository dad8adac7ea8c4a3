#pragma once

#include <string>

#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Target/TargetMachine.h>

namespace kiln::codegen {

/// Runs `pipeline` with LLVM's analyses for the machine.
void run_passes(llvm::Module& module, llvm::TargetMachine& machine,
                llvm::ModulePassManager pipeline);

/// Optimises in place with a short list of passes: lowering has already done what the long lists of
/// LLVM are for.
void optimize(llvm::Module& module, llvm::TargetMachine& machine);

/// The module's code as the assembler reads it.
std::string assembly_of(llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace kiln::codegen
