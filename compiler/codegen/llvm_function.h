#pragma once

#include <memory>
#include <string>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "compiler/codegen/llvm_expr.h"
#include "compiler/codegen/llvm_lines.h"
#include "compiler/ir/kernel.h"

namespace kiln::analysis {
class TileSettings;
}

namespace kiln::codegen {

/// What all functions made of one kernel share.
struct KernelModule {
  llvm::Module& module;
  const ir::Kernel& kernel;
  LaneAccess lane_access;
  std::string entry;                                      // also the prefix of other functions
  LineTable* lines = nullptr;                             // null: nobody asks for them
  std::unordered_map<ir::BufferRef, llvm::MDNode*> tags;  // one a buffer
  llvm::MDNode* frame_tag = nullptr;
  int parallel_bodies = 0;

  llvm::MDNode* tag_of(const ir::BufferRef& buffer);
};

class TileEmitter;

/// Emits one function: the entry of a kernel, or the body of a parallel loop.
class FunctionEmitter {
 public:
  /// KilnEntry: the whole kernel.
  static void emit_entry(KernelModule& shared);

 private:
  /// What the body of a parallel loop uses of the function around it.
  struct Captures {
    std::vector<ir::VarRef> vars;
    std::vector<ir::BufferRef> buffers;  // on the caller's stack
  };

  struct Iterations {
    llvm::Value* begin;
    llvm::Value* end;
    bool may_be_none;
  };
  struct LoopBlocks {
    llvm::BasicBlock* body;
    llvm::BasicBlock* done;
    llvm::PHINode* counter;
  };

  FunctionEmitter(KernelModule& shared, llvm::Function* function);

  void load_frame();
  void bind_scalar(const ir::VarRef& var, size_t position, bool is_natural);
  void bind_workspace();
  llvm::Value* frame_field(size_t offset, llvm::Type* type, const char* name);

  void emit(const ir::Stmt& stmt);
  void emit(const ir::Block& block);
  void emit_node(const ir::Stmt& stmt);
  void mark(const ir::Node& stmt);
  void emit(const ir::For& loop);
  void emit_serial(const ir::For& loop, llvm::Value* begin, llvm::Value* end, bool may_be_empty);
  void emit_iterations(const ir::For& loop, const Iterations& iterations, bool each_looks);
  void emit_blocks(const ir::For& loop, const Iterations& iterations, int64_t block);
  LoopBlocks open_loop(const std::string& name, const Iterations& iterations);
  void close_loop(const LoopBlocks& blocks, llvm::Value* next, llvm::Value* end);
  void emit_parallel(const ir::For& loop);
  void emit_parallel_body(const ir::For& loop, const Captures& captures, llvm::Function* function);
  Captures captures_of(const ir::For& loop) const;
  void emit(const ir::If& node);
  void emit(const ir::Allocate& node);
  void emit(const ir::Check& node);
  void begin_tiles(const ir::Stmt& body);
  std::shared_ptr<const analysis::TileSettings> other_tiles_of(const ir::For& loop) const;
  void end_tiles();
  void set_tiles(const analysis::TileSettings& settings);
  void emit(const ir::MultiplyTiles& node);
  void emit_steps(const TileEmitter& tiles, size_t depth, llvm::Value* a_elements,
                  llvm::Value* b_elements);
  void stop_if_cancelled();

  llvm::BasicBlock* new_block(const char* name);
  llvm::AllocaInst* on_stack(llvm::Type* type);

  KernelModule& shared_;
  llvm::Function* function_;
  llvm::IRBuilder<> b_;
  ExprEmitter expr_;
  llvm::Value* frame_;
  llvm::Value* thread_ = nullptr;
  bool in_parallel_ = false;
  std::shared_ptr<const analysis::TileSettings> tiles_;  // but for inside of other products
  std::vector<ir::VarRef> scope_;                        // loop variables in scope
  std::vector<ir::BufferRef> on_stack_;                  // allocated in scope
};

}  // namespace kiln::codegen
