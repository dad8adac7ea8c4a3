#pragma once

#include <memory>
#include <string>

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include "compiler/codegen/cpu_code.h"
#include "compiler/codegen/llvm_expr.h"

namespace kiln::codegen {

/// LLVM set up to make objects for one CPU. Any number of modules, one after the other; to set it
/// up takes as long as the code of a small kernel.
class ObjectGenerator {
 public:
  explicit ObjectGenerator(const CpuOptions& options);

  llvm::TargetMachine& machine() { return *machine_; }
  const LaneAccess& lane_access() const { return lane_access_; }

  /// The module as an ELF object.
  std::string generate(llvm::Module& module);

 private:
  const std::unique_ptr<llvm::TargetMachine> machine_;
  const LaneAccess lane_access_;
  llvm::SmallVector<char, 0> bytes_;
  llvm::raw_svector_ostream stream_{bytes_};
  llvm::legacy::PassManager passes_;
};

/// A generator that no other thread uses: one that an earlier compile gave back, or a new one.
std::unique_ptr<ObjectGenerator> take_generator(const CpuOptions& options);

/// Keeps it for a later compile. Not to be done with one that LLVM has reported an error of.
void give_back(const CpuOptions& options, std::unique_ptr<ObjectGenerator> generator);

}  // namespace kiln::codegen
