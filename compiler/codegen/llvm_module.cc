// Takes a kernel from loops to bytes: one module for all variants, verified before LLVM's passes
// run, and given to a generator that is kept. Errors that LLVM reports by its diagnostics end as
// ours; a generator that has reported one is not kept.
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include "compiler/codegen/cpu_code.h"
#include "compiler/codegen/llvm_function.h"
#include "compiler/codegen/llvm_generator.h"
#include "compiler/codegen/llvm_pipeline.h"
#include "compiler/codegen/llvm_sanitize.h"
#include "runtime/core/error.h"

namespace kiln::codegen {
namespace {

void check_valid(const llvm::Module& module) {
  std::string reason;
  llvm::raw_string_ostream stream(reason);
  if (!llvm::verifyModule(module, &stream)) return;
  fail(ErrorKind::Internal, "LLVM", "internal error: the code made of the kernel is not valid: {}",
       reason);
}

/// LLVM's errors of this kind need a handler; they come back as ours.
class KeepFirstError : public llvm::DiagnosticHandler {
 public:
  explicit KeepFirstError(std::string& message) : message_(message) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo& diagnostic) override {
    if (diagnostic.getSeverity() == llvm::DS_Error && message_.empty()) {
      llvm::raw_string_ostream stream(message_);
      llvm::DiagnosticPrinterRawOStream printer(stream);
      diagnostic.print(printer);
    }
    return true;
  }

 private:
  std::string& message_;
};

}  // namespace

std::string emit_cpu_code(std::span<const EntryKernel> kernels, const CpuOptions& options,
                          CpuOutput output) {
  std::unique_ptr<ObjectGenerator> generator = take_generator(options);
  llvm::TargetMachine& machine = generator->machine();
  llvm::LLVMContext context;
  std::string error;
  context.setDiagnosticHandler(std::make_unique<KeepFirstError>(error));
  llvm::Module module("kiln", context);
  module.setTargetTriple(machine.getTargetTriple().str());
  module.setDataLayout(machine.createDataLayout());
  for (const EntryKernel& kernel : kernels) {
    LaneAccess access = generator->lane_access();
    // The instruction treats the smallest numbers as 0 and rounds in its own way.
    if (options.strict) access.dots_halves = 0;
    access.adds_products = access.arithmetic.fuses && !options.strict;
    KernelModule shared{module, *kernel.kernel, access, kernel.entry};
    FunctionEmitter::emit_entry(shared);
  }
  check_valid(module);

  std::string result;
  if (output == CpuOutput::Source) {
    llvm::raw_string_ostream stream(result);
    module.print(stream, nullptr);
    return result;
  }
  optimize(module, machine);
  sanitize(module, machine, options.sanitizer);
  result = output == CpuOutput::Object ? generator->generate(module) : assembly_of(module, machine);
  if (!error.empty()) {
    fail(ErrorKind::Internal, "LLVM", "internal error: LLVM refuses the kernel: {}", error);
  }
  give_back(options, std::move(generator));
  return result;
}

}  // namespace kiln::codegen
