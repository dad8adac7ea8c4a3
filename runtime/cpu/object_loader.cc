#include "runtime/cpu/object_loader.h"

#include <atomic>

#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/Support/Error.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/X86TargetParser.h>

#include "runtime/core/error.h"
#include "runtime/cpu/math_symbols.h"

namespace kiln {
namespace {

constexpr const char* kTriple = "x86_64-pc-linux-gnu";
constexpr const char* kDataLayout =
    "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128";

bool is_known_cpu(std::string_view arch) {
  llvm::SmallVector<llvm::StringRef, 128> names;
  llvm::X86::fillValidCPUArchList(names, /*Only64Bit=*/true);
  return llvm::is_contained(names, llvm::StringRef(arch));
}

/// Errors of loading are about the bytes: an object that this host cannot hold.
template <typename T>
T value_or_fail(llvm::Expected<T> result) {
  if (result) {
    if constexpr (std::is_reference_v<T>) {
      return *result;
    } else {
      return std::move(*result);
    }
  }
  fail(ErrorKind::InvalidArgument, "ARTIFACT_CORRUPT", "the kernel's code cannot be loaded: {}",
       llvm::toString(result.takeError()));
}
void check(llvm::Error error) {
  if (!error) return;
  fail(ErrorKind::InvalidArgument, "ARTIFACT_CORRUPT", "the kernel's code cannot be loaded: {}",
       llvm::toString(std::move(error)));
}

std::unique_ptr<llvm::orc::LLJIT> make_jit() {
  llvm::orc::JITTargetMachineBuilder machine{llvm::Triple(kTriple)};
  machine.setRelocationModel(llvm::Reloc::PIC_).setCodeModel(llvm::CodeModel::Small);
  llvm::orc::LLJITBuilder builder;
  builder.setJITTargetMachineBuilder(std::move(machine));
  // Given, so that a process that only loads needs no code generator.
  builder.setDataLayout(llvm::DataLayout(kDataLayout));
  builder.setPlatformSetUp(llvm::orc::setUpInactivePlatform);
  // No plugins: generated code never unwinds, so its frames need not be registered.
  builder.setObjectLinkingLayerCreator(
      [](llvm::orc::ExecutionSession& session,
         const llvm::Triple&) -> llvm::Expected<std::unique_ptr<llvm::orc::ObjectLayer>> {
        return std::make_unique<llvm::orc::ObjectLinkingLayer>(session);
      });
  return value_or_fail(builder.create());
}

class JitLoader;

class JitObject : public LoadedObject {
 public:
  JitObject(JitLoader& loader, llvm::orc::JITDylib& library, std::vector<KilnEntry> entries)
      : loader_(loader), library_(&library), entries_(std::move(entries)) {}
  ~JitObject() override;
  const std::vector<KilnEntry>& entries() const override { return entries_; }

 private:
  JitLoader& loader_;
  llvm::orc::JITDylib* library_;
  std::vector<KilnEntry> entries_;
};

class JitLoader : public ObjectLoader {
 public:
  JitLoader() : jit_(make_jit()) {
    // Failed look-ups come back as errors; nothing is to be printed beside.
    jit_->getExecutionSession().setErrorReporter(
        [](llvm::Error error) { llvm::consumeError(std::move(error)); });
    llvm::orc::SymbolMap symbols;
    for (const ProcessSymbol& symbol : process_symbols()) {
      symbols[jit_->mangleAndIntern(symbol.name)] = {
          llvm::orc::ExecutorAddr::fromPtr(symbol.address), llvm::JITSymbolFlags::Exported};
    }
    check(jit_->getMainJITDylib().define(llvm::orc::absoluteSymbols(std::move(symbols))));
  }

  std::unique_ptr<LoadedObject> load(const std::string& object,
                                     const std::vector<std::string>& names) override {
    llvm::orc::JITDylib& library =
        value_or_fail(jit_->createJITDylib("kernel" + std::to_string(next_library_++)));
    library.addToLinkOrder(jit_->getMainJITDylib());
    try {
      check(jit_->addObjectFile(library, llvm::MemoryBuffer::getMemBufferCopy(object, "kernel")));
      std::vector<KilnEntry> entries;
      for (const std::string& name : names) {
        entries.push_back(value_or_fail(jit_->lookup(library, name)).toPtr<KilnEntry>());
      }
      return std::make_unique<JitObject>(*this, library, std::move(entries));
    } catch (...) {
      remove(library);
      throw;
    }
  }

  void remove(llvm::orc::JITDylib& library) {
    llvm::consumeError(jit_->getExecutionSession().removeJITDylib(library));
  }

 private:
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  std::atomic<int64_t> next_library_{0};
};

JitObject::~JitObject() { loader_.remove(*library_); }

}  // namespace

bool host_can_run(std::string_view arch) {
  if (!is_known_cpu(arch)) return false;
  const llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
  llvm::SmallVector<llvm::StringRef, 64> wanted;
  llvm::X86::getFeaturesForCPU(llvm::StringRef(arch), wanted);
  for (const llvm::StringRef feature : wanted) {
    const auto found = host.find(feature);
    if (found != host.end() && !found->second) return false;
  }
  return true;
}

std::string host_arch() {
  const std::string name = llvm::sys::getHostCPUName().str();
  for (const std::string& candidate :
       {name, std::string("x86-64-v4"), std::string("x86-64-v3"), std::string("x86-64-v2")}) {
    if (host_can_run(candidate)) return candidate;
  }
  return "x86-64";
}

std::unique_ptr<ObjectLoader> make_object_loader() { return std::make_unique<JitLoader>(); }

}  // namespace kiln
