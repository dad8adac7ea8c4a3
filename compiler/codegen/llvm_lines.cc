// Lines of loops as the lines of a source file: a compile unit whose only file is the text that
// ir::print_with_lines() gives, a subprogram a function, a location an instruction. Asked for by
// people who read the code; code that runs has none, since it only makes compiling slower.
#include "compiler/codegen/llvm_lines.h"

#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/IR/DebugInfoMetadata.h>

namespace kiln::codegen {

LineTable::LineTable(llvm::Module& module, const ir::PrintedKernel& loops)
    : loops_(loops), builder_(module) {
  module.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
  file_ = builder_.createFile("loops", "");
  unit_ = builder_.createCompileUnit(llvm::dwarf::DW_LANG_C, file_, "kiln", true, "", 0, "",
                                     llvm::DICompileUnit::LineTablesOnly);
}

void LineTable::add(llvm::Function& function) {
  llvm::DISubroutineType* const type =
      builder_.createSubroutineType(builder_.getOrCreateTypeArray({}));
  function.setSubprogram(builder_.createFunction(
      unit_, function.getName(), function.getName(), file_, 1, type, 1, llvm::DINode::FlagZero,
      llvm::DISubprogram::SPFlagDefinition | llvm::DISubprogram::SPFlagOptimized));
}

llvm::DebugLoc LineTable::place_of(const llvm::Function& function) const {
  return llvm::DILocation::get(function.getContext(), 1, 0, function.getSubprogram());
}

llvm::DebugLoc LineTable::place_of(const ir::Node& stmt, const llvm::Function& function) const {
  const auto found = loops_.lines.find(&stmt);
  if (found == loops_.lines.end()) return {};
  return llvm::DILocation::get(function.getContext(), static_cast<unsigned>(found->second), 0,
                               function.getSubprogram());
}

}  // namespace kiln::codegen
