// Loads objects with LLVM's ORC and JITLink, each into a JITDylib of its own, so that entries may
// have the same names and code goes with its kernel. The only way out of an object is the list in
// math_symbols.cc.
#include "runtime/cpu/object_loader.h"

#include <atomic>

#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/Support/Error.h>
#include <llvm/Support/MemoryBuffer.h>

#include "runtime/core/error.h"

namespace kiln {
namespace {

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

/// A session without plug-ins or compilers: objects come compiled, and generated code never
/// unwinds, so its frames need not be registered.
class JitLoader : public ObjectLoader {
 public:
  explicit JitLoader(std::span<const ProcessSymbol> more)
      : session_(value_or_fail(llvm::orc::SelfExecutorProcessControl::Create())),
        linker_(session_),
        process_(session_.createBareJITDylib("process")) {
    // Failed look-ups come back as errors; nothing is to be printed beside.
    session_.setErrorReporter([](llvm::Error error) { llvm::consumeError(std::move(error)); });
    llvm::orc::SymbolMap symbols;
    for (const std::span<const ProcessSymbol> list : {process_symbols(), more}) {
      for (const ProcessSymbol& symbol : list) {
        symbols[session_.intern(symbol.name)] = {llvm::orc::ExecutorAddr::fromPtr(symbol.address),
                                                 llvm::JITSymbolFlags::Exported};
      }
    }
    check(process_.define(llvm::orc::absoluteSymbols(std::move(symbols))));
  }
  ~JitLoader() override { llvm::consumeError(session_.endSession()); }

  std::unique_ptr<LoadedObject> load(const std::string& object,
                                     const std::vector<std::string>& names) override {
    llvm::orc::JITDylib& library =
        session_.createBareJITDylib("kernel" + std::to_string(next_library_++));
    library.addToLinkOrder(process_);
    try {
      check(linker_.add(library, llvm::MemoryBuffer::getMemBufferCopy(object, "kernel")));
      std::vector<KilnEntry> entries;
      for (const std::string& name : names) {
        const llvm::orc::ExecutorSymbolDef symbol =
            value_or_fail(session_.lookup({&library}, session_.intern(name)));
        entries.push_back(symbol.getAddress().toPtr<KilnEntry>());
      }
      return std::make_unique<JitObject>(*this, library, std::move(entries));
    } catch (...) {
      remove(library);
      throw;
    }
  }

  void remove(llvm::orc::JITDylib& library) {
    llvm::consumeError(session_.removeJITDylib(library));
  }

 private:
  llvm::orc::ExecutionSession session_;
  llvm::orc::ObjectLinkingLayer linker_;
  llvm::orc::JITDylib& process_;
  std::atomic<int64_t> next_library_{0};
};

JitObject::~JitObject() { loader_.remove(*library_); }

}  // namespace

std::unique_ptr<ObjectLoader> make_object_loader(std::span<const ProcessSymbol> more) {
  return std::make_unique<JitLoader>(more);
}

}  // namespace kiln
