// Puts LLVM's sanitizers into generated code in a form that needs no runtime of theirs: every
// access calls a function, which the tests provide.
#include "compiler/codegen/llvm_sanitize.h"

#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Transforms/Instrumentation/AddressSanitizer.h>
#include <llvm/Transforms/Instrumentation/ThreadSanitizer.h>

#include "compiler/codegen/llvm_pipeline.h"
#include "runtime/core/error.h"

namespace kiln::codegen {
namespace {

/// Poisoned zones around what is on the stack need the shadow memory of the sanitizer's runtime.
/// Nothing but LLVM's own option turns them off.
void leave_the_stack_alone() {
  static const bool done = [] {
    llvm::cl::Option* option = llvm::cl::getRegisteredOptions().lookup("asan-stack");
    KILN_CHECK(option != nullptr);
    static_cast<llvm::cl::opt<bool>*>(option)->setValue(false);
    return true;
  }();
  KILN_CHECK(done);
}

/// As kernels of operating systems have it: calls alone, to functions that come back, without a
/// start of the runtime.
llvm::AddressSanitizerPass address_calls() {
  leave_the_stack_alone();
  llvm::AddressSanitizerOptions options;
  options.CompileKernel = true;
  options.Recover = true;
  options.UseAfterReturn = llvm::AsanDetectStackUseAfterReturnMode::Never;
  options.InstrumentationWithCallsThreshold = 0;
  options.InsertVersionCheck = false;
  return {options, false, false, llvm::AsanDtorKind::None, llvm::AsanCtorKind::None};
}

}  // namespace

void sanitize(llvm::Module& module, llvm::TargetMachine& machine, Sanitizer sanitizer) {
  if (sanitizer == Sanitizer::None) return;
  const bool is_address = sanitizer == Sanitizer::Address;
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    function.addFnAttr(is_address ? llvm::Attribute::SanitizeAddress
                                  : llvm::Attribute::SanitizeThread);
  }
  llvm::ModulePassManager pipeline;
  if (is_address) {
    pipeline.addPass(address_calls());
  } else {
    pipeline.addPass(llvm::createModuleToFunctionPassAdaptor(llvm::ThreadSanitizerPass()));
  }
  run_passes(module, machine, std::move(pipeline));
}

}  // namespace kiln::codegen
