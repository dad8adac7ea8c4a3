#pragma once

#include <llvm/IR/DIBuilder.h>
#include <llvm/IR/Module.h>

#include "compiler/ir/print.h"

namespace kiln::codegen {

/// Tells LLVM on which line of the printed loops the statement of an instruction stands, as line
/// tables for debuggers do; LLVM's passes and its assembly keep it.
class LineTable {
 public:
  /// The table of a module that has no functions yet. `loops` outlives it.
  LineTable(llvm::Module& module, const ir::PrintedKernel& loops);

  /// Before instructions of the function get places.
  void add(llvm::Function& function);
  /// Nothing for a statement that has no line of its own.
  llvm::DebugLoc place_of(const ir::Node& stmt, const llvm::Function& function) const;
  /// Where the function itself stands: what belongs to no statement.
  llvm::DebugLoc place_of(const llvm::Function& function) const;
  /// After the last function.
  void finish() { builder_.finalize(); }

 private:
  const ir::PrintedKernel& loops_;
  llvm::DIBuilder builder_;
  llvm::DIFile* file_;
  llvm::DICompileUnit* unit_;
};

}  // namespace kiln::codegen
