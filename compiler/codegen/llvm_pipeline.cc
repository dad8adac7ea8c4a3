// Our list of LLVM's passes. What its default pipelines spend most time on, unrolling and
// vectorising, is done by lowering; left are registers for accumulators, hoisting, and cleaning up.
// Short because compile time is what a user waits for.
#include "compiler/codegen/llvm_pipeline.h"

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include "runtime/core/error.h"

namespace kiln::codegen {
namespace {

llvm::FunctionPassManager passes() {
  llvm::FunctionPassManager passes;
  // Accumulators with constant indices become registers.
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/false));
  // Address arithmetic leaves the loops; so do elements that a loop reads and writes in one place.
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()),
                                                       /*UseMemorySSA=*/true));
  passes.addPass(llvm::InstCombinePass(llvm::InstCombineOptions().setVerifyFixpoint(false)));
  passes.addPass(llvm::SimplifyCFGPass());
  return passes;
}

}  // namespace

void run_passes(llvm::Module& module, llvm::TargetMachine& machine,
                llvm::ModulePassManager pipeline) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  pipeline.run(module, modules);
}

void optimize(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::ModulePassManager pipeline;
  pipeline.addPass(llvm::createModuleToFunctionPassAdaptor(passes()));
  run_passes(module, machine, std::move(pipeline));
}

std::string assembly_of(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  const bool refused = machine.addPassesToEmitFile(
      passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile, /*DisableVerify=*/true);
  KILN_CHECK(!refused);
  passes.run(module);
  return {bytes.begin(), bytes.end()};
}

}  // namespace kiln::codegen
