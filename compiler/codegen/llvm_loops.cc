// Emits loops: serial ones in this function, and for the body of each parallel one a function of
// its own, which the runtime calls with a range of iterations and what the body captures. Loops are
// rotated as LLVM's passes want them: the test at the end, a guard in front where they may be
// empty. Long ones look whether the call is cancelled: pace.h says where.
#include <algorithm>
#include <cstddef>

#include <llvm/IR/MDBuilder.h>

#include "compiler/analysis/tile_settings.h"
#include "compiler/codegen/llvm_function.h"
#include "compiler/codegen/pace.h"
#include "compiler/ir/build.h"
#include "compiler/ir/mutator.h"
#include "runtime/core/kernel_abi.h"

namespace kiln::codegen {

using ir::Expr;
using llvm::Value;

namespace {

/// The variables and buffers a statement uses, once each, in the order met.
class Uses : public ir::Visitor {
 public:
  std::vector<ir::VarRef> vars;
  std::vector<ir::BufferRef> buffers;

 private:
  using Visitor::visit;
  template <typename T>
  static void add(std::vector<T>& list, const T& item) {
    if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
  }
  void visit(const ir::Var& node) override { add(vars, ir::VarRef(&node)); }
  void element(const ir::BufferRef& buffer, const std::vector<Expr>& indices) override {
    add(buffers, buffer);
    Visitor::element(buffer, indices);
  }
};

llvm::FunctionType* body_type(llvm::LLVMContext& context) {
  llvm::Type* const pointer = llvm::PointerType::get(context, 0);
  llvm::Type* const i64 = llvm::Type::getInt64Ty(context);
  return llvm::FunctionType::get(llvm::Type::getInt32Ty(context), {pointer, pointer, i64, i64, i64},
                                 false);
}

}  // namespace

void FunctionEmitter::emit(const ir::For& loop) {
  const std::optional<int64_t> extent = ir::as_const_int(loop.extent);
  if (extent && *extent <= 0) return;
  if (extent == 1) {
    expr_.bind(loop.var, b_.getInt64(0), true);
    scope_.push_back(loop.var);
    emit(loop.body);
    scope_.pop_back();
    return;
  }
  // Inside a parallel loop every core has work already.
  if (loop.loop_kind == ir::LoopKind::Parallel && !in_parallel_) return emit_parallel(loop);
  const std::shared_ptr<const analysis::TileSettings> before = tiles_;
  if (const auto others = other_tiles_of(loop)) {
    tiles_ = others;
    set_tiles(*others);
  }
  emit_serial(loop, b_.getInt64(0), expr_.index(loop.extent), !extent);
  if (tiles_ != before) {
    tiles_ = before;
    set_tiles(*before);
  }
}

void FunctionEmitter::emit_serial(const ir::For& loop, Value* begin, Value* end,
                                  bool may_be_empty) {
  const Looks looks = looks_of(loop);
  if (looks.pace == Pace::Blocks)
    return emit_blocks(loop, {begin, end, may_be_empty}, looks.iterations);
  emit_iterations(loop, {begin, end, may_be_empty}, looks.pace == Pace::Each);
}

void FunctionEmitter::emit_iterations(const ir::For& loop, const Iterations& iterations,
                                      bool each_looks) {
  const LoopBlocks blocks = open_loop(loop.var->name, iterations);
  if (each_looks) stop_if_cancelled();
  expr_.bind(loop.var, blocks.counter, true);
  scope_.push_back(loop.var);
  {
    const KnownValues::Region region(expr_.known());
    emit(loop.body);
  }
  scope_.pop_back();
  close_loop(blocks, b_.CreateAdd(blocks.counter, b_.getInt64(1), "", true, true), iterations.end);
}

// Looks behind a block, where there is another one: a loop of few iterations pays nothing.
void FunctionEmitter::emit_blocks(const ir::For& loop, const Iterations& iterations,
                                  int64_t block) {
  const LoopBlocks blocks = open_loop(loop.var->name, iterations);
  Value* const left = b_.CreateSub(iterations.end, blocks.counter, "left", true, true);
  Value* const is_last = b_.CreateICmpSLE(left, b_.getInt64(static_cast<uint64_t>(block)));
  Value* const next =
      b_.CreateAdd(blocks.counter, b_.getInt64(static_cast<uint64_t>(block)), "", true, true);
  Value* const stop = b_.CreateSelect(is_last, iterations.end, next);
  emit_iterations(loop, {blocks.counter, stop, false}, false);
  llvm::BasicBlock* const more = new_block("more");
  b_.CreateCondBr(is_last, blocks.done, more);
  b_.SetInsertPoint(more);
  stop_if_cancelled();
  blocks.counter->addIncoming(stop, b_.GetInsertBlock());
  b_.CreateBr(blocks.body);
  b_.SetInsertPoint(blocks.done);
}

/// Before the first iteration; what is emitted next is the body.
FunctionEmitter::LoopBlocks FunctionEmitter::open_loop(const std::string& name,
                                                       const Iterations& iterations) {
  llvm::BasicBlock* const body = new_block("loop");
  llvm::BasicBlock* const done = new_block("done");
  if (iterations.may_be_none) {
    b_.CreateCondBr(b_.CreateICmpSLT(iterations.begin, iterations.end), body, done);
  } else {
    b_.CreateBr(body);
  }
  llvm::BasicBlock* const before = b_.GetInsertBlock();
  b_.SetInsertPoint(body);
  llvm::PHINode* const counter = b_.CreatePHI(b_.getInt64Ty(), 2, name);
  counter->addIncoming(iterations.begin, before);
  return {body, done, counter};
}

/// Behind the body: on to iteration `next`, or out.
void FunctionEmitter::close_loop(const LoopBlocks& blocks, Value* next, Value* end) {
  blocks.counter->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpSLT(next, end), blocks.body, blocks.done);
  b_.SetInsertPoint(blocks.done);
}

// One load and a branch that is never taken; relaxed, since nothing else depends on it.
void FunctionEmitter::stop_if_cancelled() {
  Value* const flag = frame_field(offsetof(KilnFrame, cancelled), b_.getPtrTy(), "cancelled");
  llvm::LoadInst* const value = b_.CreateAlignedLoad(b_.getInt32Ty(), flag, llvm::Align(4));
  value->setAtomic(llvm::AtomicOrdering::Monotonic);  // it changes under our feet
  llvm::BasicBlock* const stop = new_block("cancelled");
  llvm::BasicBlock* const go_on = new_block("running");
  llvm::MDBuilder metadata(b_.getContext());
  b_.CreateCondBr(b_.CreateICmpNE(value, b_.getInt32(0)), stop, go_on,
                  metadata.createUnlikelyBranchWeights());
  b_.SetInsertPoint(stop);
  end_tiles();
  b_.CreateRet(b_.getInt32(2));
  b_.SetInsertPoint(go_on);
}

// Arguments, sizes and the workspace are in the frame; captured is what the function around has
// made.
FunctionEmitter::Captures FunctionEmitter::captures_of(const ir::For& loop) const {
  Uses uses;
  uses(loop.body);
  Captures captures;
  for (const ir::VarRef& var : uses.vars) {
    if (std::find(scope_.begin(), scope_.end(), var) != scope_.end()) captures.vars.push_back(var);
  }
  for (const ir::BufferRef& buffer : uses.buffers) {
    if (std::find(on_stack_.begin(), on_stack_.end(), buffer) != on_stack_.end()) {
      captures.buffers.push_back(buffer);
    }
  }
  return captures;
}

// Captured values travel in an array on this stack, which the body reads as it likes: it is there
// until parallel_for returns.
void FunctionEmitter::emit_parallel(const ir::For& loop) {
  const Captures captures = captures_of(loop);
  const size_t count = captures.vars.size() + captures.buffers.size();
  Value* const count_of_loop = expr_.index(loop.extent);
  llvm::Type* const slots = llvm::ArrayType::get(b_.getInt64Ty(), std::max<size_t>(count, 1));
  llvm::AllocaInst* const memory = on_stack(slots);
  const auto slot = [&](size_t i) {
    return b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), memory, i);
  };
  for (size_t i = 0; i < captures.vars.size(); ++i) {
    b_.CreateStore(expr_.value_of(captures.vars[i]), slot(i));
  }
  for (size_t i = 0; i < captures.buffers.size(); ++i) {
    b_.CreateStore(expr_.place_of(captures.buffers[i]).pointer, slot(captures.vars.size() + i));
  }

  auto* const function = llvm::Function::Create(
      body_type(b_.getContext()), llvm::Function::InternalLinkage,
      shared_.entry + ".parallel" + std::to_string(shared_.parallel_bodies++), shared_.module);
  FunctionEmitter(shared_, function).emit_parallel_body(loop, captures, function);

  auto* const run_type = llvm::FunctionType::get(
      b_.getInt32Ty(), {b_.getPtrTy(), b_.getPtrTy(), b_.getPtrTy(), b_.getInt64Ty()}, false);
  Value* const run = frame_field(offsetof(KilnFrame, parallel_for), b_.getPtrTy(), "parallel_for");
  Value* const result = b_.CreateCall(run_type, run, {frame_, function, memory, count_of_loop});
  expr_.known().forget_loads();
  llvm::BasicBlock* const failed = new_block("failed");
  llvm::BasicBlock* const go_on = new_block("joined");
  llvm::MDBuilder metadata(b_.getContext());
  b_.CreateCondBr(b_.CreateICmpNE(result, b_.getInt32(0)), failed, go_on,
                  metadata.createUnlikelyBranchWeights());
  b_.SetInsertPoint(failed);
  end_tiles();
  b_.CreateRet(result);
  b_.SetInsertPoint(go_on);
}

// The same order of slots as in emit_parallel().
void FunctionEmitter::emit_parallel_body(const ir::For& loop, const Captures& captures,
                                         llvm::Function* function) {
  in_parallel_ = true;
  thread_ = function->getArg(4);
  load_frame();
  mark(loop);
  Value* const memory = function->getArg(1);
  const auto slot = [&](size_t i, llvm::Type* type) {
    Value* const address = b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), memory, i);
    auto* const value = b_.CreateAlignedLoad(type, address, llvm::Align(8));
    value->setMetadata(llvm::LLVMContext::MD_invariant_load,
                       llvm::MDNode::get(b_.getContext(), {}));
    return value;
  };
  for (size_t i = 0; i < captures.vars.size(); ++i) {
    expr_.bind(captures.vars[i], slot(i, b_.getInt64Ty()), true);
    scope_.push_back(captures.vars[i]);
  }
  for (size_t i = 0; i < captures.buffers.size(); ++i) {
    const ir::BufferRef& buffer = captures.buffers[i];
    expr_.bind(buffer, {slot(captures.vars.size() + i, b_.getPtrTy()), shared_.tag_of(buffer)});
  }
  begin_tiles(loop.body);
  emit_serial(loop, function->getArg(2), function->getArg(3), true);
  end_tiles();
  expr_.fence();
  b_.CreateRet(b_.getInt32(0));
}

}  // namespace kiln::codegen
