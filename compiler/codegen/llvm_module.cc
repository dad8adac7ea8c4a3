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

std::string text_of(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

/// A module on its way through LLVM, for one target, on a generator that is kept.
class ModuleBuild {
 public:
  explicit ModuleBuild(const CpuOptions& options)
      : options_(options), generator_(take_generator(options)), module_("kiln", context_) {
    context_.setDiagnosticHandler(std::make_unique<KeepFirstError>(error_));
    module_.setTargetTriple(machine().getTargetTriple().str());
    module_.setDataLayout(machine().createDataLayout());
  }

  llvm::Module& module() { return module_; }
  llvm::TargetMachine& machine() { return generator_->machine(); }
  ObjectGenerator& generator() { return *generator_; }

  void emit(std::span<const EntryKernel> kernels, LineTable* lines) {
    for (const EntryKernel& kernel : kernels) {
      LaneAccess access = generator_->lane_access();
      // The instruction treats the smallest numbers as 0 and rounds in its own way.
      if (options_.strict) access.dots_halves = 0;
      access.adds_products = access.arithmetic.fuses && !options_.strict;
      KernelModule shared{module_, *kernel.kernel, access, kernel.entry, lines};
      FunctionEmitter::emit_entry(shared);
    }
    if (lines != nullptr) lines->finish();
    check_valid(module_);
  }

  /// Throws what LLVM reported.
  void finish() {
    if (!error_.empty()) {
      fail(ErrorKind::Internal, "LLVM", "internal error: LLVM refuses the kernel: {}", error_);
    }
    give_back(options_, std::move(generator_));
  }

 private:
  const CpuOptions& options_;
  std::unique_ptr<ObjectGenerator> generator_;
  llvm::LLVMContext context_;
  std::string error_;
  llvm::Module module_;
};

}  // namespace

std::string emit_cpu_code(std::span<const EntryKernel> kernels, const CpuOptions& options,
                          CpuOutput output) {
  ModuleBuild build(options);
  build.emit(kernels, nullptr);
  if (output == CpuOutput::Source) return text_of(build.module());
  optimize(build.module(), build.machine());
  sanitize(build.module(), build.machine(), options.sanitizer);
  std::string result = output == CpuOutput::Object ? build.generator().generate(build.module())
                                                   : assembly_of(build.module(), build.machine());
  build.finish();
  return result;
}

CpuListing cpu_listing(const EntryKernel& kernel, const ir::PrintedKernel& loops,
                       const CpuOptions& options) {
  ModuleBuild build(options);
  LineTable lines(build.module(), loops);
  build.emit({&kernel, 1}, &lines);
  optimize(build.module(), build.machine());
  CpuListing listing{.llvm = text_of(build.module()), .assembly = ""};
  listing.assembly = assembly_of(build.module(), build.machine());
  build.finish();
  return listing;
}

}  // namespace kiln::codegen
