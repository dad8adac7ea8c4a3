// Emits statements as control flow, but for loops (llvm_loops.cc): the entry of a kernel and what
// it finds in its frame, branches, checks, memory on the stack. Buffers get alias tags, since no
// two of them overlap.
#include "compiler/codegen/llvm_function.h"

#include <algorithm>
#include <cstddef>

#include <llvm/IR/MDBuilder.h>

#include "compiler/analysis/nontemporal.h"
#include "compiler/codegen/llvm_values.h"
#include "compiler/ir/build.h"
#include "compiler/ir/dispatch.h"
#include "runtime/core/error.h"
#include "runtime/core/kernel_abi.h"

namespace kiln::codegen {

using ir::as;
using ir::Expr;
using llvm::Value;

namespace {

constexpr uint64_t kLargestScalar = uint64_t{1} << 47;  // bind_arguments() sees to it
constexpr int64_t kStackAlignment = 64;                 // bytes: a line, and the widest register

/// Whether the variable is the extent of a dimension of a parameter, and so never negative.
bool is_dimension(const ir::Kernel& kernel, const ir::VarRef& var) {
  return std::any_of(kernel.parameters.begin(), kernel.parameters.end(), [&](const auto& buffer) {
    return std::any_of(buffer->shape.begin(), buffer->shape.end(),
                       [&](const Expr& extent) { return extent.get() == var.get(); });
  });
}

/// What holds of the frame at every call, so that LLVM may hoist loads of its fields.
void describe_frame(llvm::Function* function) {
  llvm::LLVMContext& context = function->getContext();
  function->setDoesNotThrow();
  function->addParamAttr(0, llvm::Attribute::NoAlias);
  function->addParamAttr(0,
                         llvm::Attribute::getWithDereferenceableBytes(context, sizeof(KilnFrame)));
  function->addParamAttr(0, llvm::Attribute::getWithAlignment(context, llvm::Align(8)));
}

}  // namespace

// All tags hang from one root: under different roots accesses may alias for LLVM, as siblings they
// do not.
llvm::MDNode* KernelModule::tag_of(const ir::BufferRef& buffer) {
  llvm::MDNode*& tag = tags[buffer];
  if (tag == nullptr) {
    llvm::MDBuilder metadata(module.getContext());
    llvm::MDNode* const root = metadata.createTBAARoot("kiln");
    llvm::MDNode* const type = metadata.createTBAAScalarTypeNode(
        entry + "." + std::to_string(tags.size()) + "." + buffer->name, root);
    tag = metadata.createTBAAStructTagNode(type, type, 0);
  }
  return tag;
}

FunctionEmitter::FunctionEmitter(KernelModule& shared, llvm::Function* function)
    : shared_(shared),
      function_(function),
      b_(llvm::BasicBlock::Create(function->getContext(), "entry", function)),
      expr_(b_, shared.lane_access),
      frame_(function->getArg(0)) {
  describe_frame(function);
  if (shared.lines == nullptr) return;
  shared.lines->add(*function);
  b_.SetCurrentDebugLocation(shared.lines->place_of(*function));
}

void FunctionEmitter::emit_entry(KernelModule& shared) {
  llvm::LLVMContext& context = shared.module.getContext();
  auto* const type = llvm::FunctionType::get(llvm::Type::getInt32Ty(context),
                                             {llvm::PointerType::get(context, 0)}, false);
  auto* const function =
      llvm::Function::Create(type, llvm::Function::ExternalLinkage, shared.entry, shared.module);
  FunctionEmitter emitter(shared, function);
  emitter.thread_ = emitter.b_.getInt64(0);
  emitter.load_frame();
  emitter.begin_tiles(shared.kernel.body);
  emitter.emit(shared.kernel.body);
  emitter.end_tiles();
  emitter.expr_.fence();
  emitter.b_.CreateRet(emitter.b_.getInt32(0));
}

Value* FunctionEmitter::frame_field(size_t offset, llvm::Type* type, const char* name) {
  Value* const address = b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), frame_, offset);
  auto* const load = b_.CreateAlignedLoad(type, address, llvm::Align(8), name);
  load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b_.getContext(), {}));
  return load;
}

/// Finds all that the kernel's frame holds; what the function does not use is left out by LLVM.
void FunctionEmitter::load_frame() {
  const ir::Kernel& kernel = shared_.kernel;
  llvm::MDNode* const nothing = llvm::MDNode::get(b_.getContext(), {});
  Value* const tensors = frame_field(offsetof(KilnFrame, tensors), b_.getPtrTy(), "tensors");
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    const ir::BufferRef& buffer = kernel.parameters[i];
    Value* const address = b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), tensors, i);
    auto* const pointer =
        b_.CreateAlignedLoad(b_.getPtrTy(), address, llvm::Align(8), buffer->name);
    pointer->setMetadata(llvm::LLVMContext::MD_invariant_load, nothing);
    expr_.bind(buffer, {pointer, shared_.tag_of(buffer)});
  }
  for (size_t i = 0; i < kernel.sizes.size(); ++i) {
    bind_scalar(kernel.sizes[i], i, is_dimension(kernel, kernel.sizes[i]));
  }
  for (size_t i = 0; i < kernel.strides.size(); ++i) {
    bind_scalar(kernel.strides[i], kernel.sizes.size() + i, false);
  }
  for (const ir::BufferRef& buffer : kernel.nontemporal) {
    BufferPlace place = expr_.place_of(buffer);
    place.is_large = expr_.value(analysis::is_nontemporal(kernel, *buffer));
    expr_.bind(buffer, place);
  }
  bind_workspace();
}

// Of a dimension LLVM is told the range, so that it need not extend signs or guard divisions.
void FunctionEmitter::bind_scalar(const ir::VarRef& var, size_t position, bool is_natural) {
  Value* const scalars = frame_field(offsetof(KilnFrame, scalars), b_.getPtrTy(), "scalars");
  Value* const address = b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), scalars, position);
  auto* const value = b_.CreateAlignedLoad(b_.getInt64Ty(), address, llvm::Align(8), var->name);
  value->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b_.getContext(), {}));
  if (is_natural) {
    llvm::MDBuilder metadata(b_.getContext());
    value->setMetadata(
        llvm::LLVMContext::MD_range,
        metadata.createRange(llvm::APInt(64, 0), llvm::APInt(64, kLargestScalar + 1)));
  }
  expr_.bind(var, value, is_natural);
}

// Buffers of each thread lie in its own block: `thread_workspace + thread*bytes + offset`.
void FunctionEmitter::bind_workspace() {
  const ir::Kernel& kernel = shared_.kernel;
  if (kernel.workspace.empty()) return;
  Value* const shared = frame_field(offsetof(KilnFrame, workspace), b_.getPtrTy(), "workspace");
  Value* const of_threads =
      frame_field(offsetof(KilnFrame, thread_workspace), b_.getPtrTy(), "thread_workspace");
  Value* const bytes = frame_field(offsetof(KilnFrame, thread_workspace_bytes), b_.getInt64Ty(),
                                   "thread_workspace_bytes");
  Value* const own =
      b_.CreateInBoundsGEP(b_.getInt8Ty(), of_threads, b_.CreateNSWMul(thread_, bytes));
  for (const ir::Kernel::WorkspaceBuffer& buffer : kernel.workspace) {
    Value* const start = buffer.per_thread ? own : shared;
    Value* const pointer =
        b_.CreateInBoundsGEP(b_.getInt8Ty(), start, expr_.index(buffer.offset_bytes));
    expr_.bind(buffer.buffer, {pointer, shared_.tag_of(buffer.buffer)});
  }
  expr_.forget();
}

llvm::BasicBlock* FunctionEmitter::new_block(const char* name) {
  return llvm::BasicBlock::Create(b_.getContext(), name, function_);
}

/// In the first block, where LLVM makes it part of the frame however often the place is passed.
llvm::AllocaInst* FunctionEmitter::on_stack(llvm::Type* type) {
  llvm::IRBuilder<> start(&function_->getEntryBlock(), function_->getEntryBlock().begin());
  llvm::AllocaInst* const memory = start.CreateAlloca(type);
  memory->setAlignment(llvm::Align(kStackAlignment));
  return memory;
}

void FunctionEmitter::emit(const ir::Stmt& stmt) {
  if (shared_.lines == nullptr) return emit_node(stmt);
  const llvm::DebugLoc around = b_.getCurrentDebugLocation();
  mark(*stmt);
  emit_node(stmt);
  b_.SetCurrentDebugLocation(around);
}

/// What is emitted next is of this statement, if it has a line of its own.
void FunctionEmitter::mark(const ir::Node& stmt) {
  if (shared_.lines == nullptr) return;
  if (const llvm::DebugLoc place = shared_.lines->place_of(stmt, *function_))
    b_.SetCurrentDebugLocation(place);
}

void FunctionEmitter::emit_node(const ir::Stmt& stmt) {
  expr_.forget();
  switch (stmt->kind) {
    case ir::NodeKind::Block: return emit(*as<ir::Block>(stmt));
    case ir::NodeKind::For: return emit(*as<ir::For>(stmt));
    case ir::NodeKind::If: return emit(*as<ir::If>(stmt));
    case ir::NodeKind::Store: return expr_.store(*as<ir::Store>(stmt));
    case ir::NodeKind::Allocate: return emit(*as<ir::Allocate>(stmt));
    case ir::NodeKind::Check: return emit(*as<ir::Check>(stmt));
    case ir::NodeKind::MultiplyTiles: return emit(*as<ir::MultiplyTiles>(stmt));
    case ir::NodeKind::Prefetch: return expr_.prefetch(*as<ir::Prefetch>(stmt));
    default: KILN_CHECK(!"a statement of a kernel for the CPU");
  }
}

void FunctionEmitter::emit(const ir::Block& block) {
  std::span<const ir::Stmt> left = block.body;
  while (!left.empty()) {
    mark(*left.front());
    size_t done = expr_.store_together(left);
    if (done == 0) {
      emit(left[0]);
      done = 1;
    }
    left = left.subspan(done);
  }
}

// Nothing that a branch computes or loads is known behind it.
void FunctionEmitter::emit(const ir::If& node) {
  Value* const condition = expr_.index(node.condition);
  llvm::BasicBlock* const yes = new_block("then");
  llvm::BasicBlock* const end = new_block("end");
  llvm::BasicBlock* const no = node.else_body ? new_block("else") : end;
  llvm::MDBuilder metadata(b_.getContext());
  b_.CreateCondBr(condition, yes, no, node.likely ? metadata.createLikelyBranchWeights() : nullptr);
  const auto branch = [&](llvm::BasicBlock* block, const ir::Stmt& body) {
    const KnownValues::Region region(expr_.known());
    b_.SetInsertPoint(block);
    emit(body);
    b_.CreateBr(end);
  };
  branch(yes, node.then_body);
  if (node.else_body) branch(no, node.else_body);
  b_.SetInsertPoint(end);
}

void FunctionEmitter::emit(const ir::Allocate& node) {
  int64_t elements = 1;
  for (const Expr& extent : ir::extents_in_memory(*node.buffer)) {
    const std::optional<int64_t> value = ir::as_const_int(extent);
    KILN_CHECK(value && *value >= 0);  // plan_storage moves all others to the workspace
    elements *= *value;
  }
  llvm::Type* const type =
      llvm::ArrayType::get(memory_type(b_.getContext(), node.buffer->type),
                           static_cast<uint64_t>(std::max<int64_t>(elements, 1)));
  expr_.bind(node.buffer, {on_stack(type), shared_.tag_of(node.buffer)});
  on_stack_.push_back(node.buffer);
  emit(node.body);
  on_stack_.pop_back();
}

void FunctionEmitter::emit(const ir::Check& node) {
  Value* const index = expr_.index(node.index);
  Value* const extent = expr_.index(node.extent);
  llvm::BasicBlock* const fired = new_block("fired");
  llvm::BasicBlock* const held = new_block("held");
  llvm::MDBuilder metadata(b_.getContext());
  // Of a negative extent every index is out of range too.
  Value* const inside =
      b_.CreateAnd(b_.CreateICmpSGE(index, b_.getInt64(0)), b_.CreateICmpSLT(index, extent));
  b_.CreateCondBr(inside, held, fired, metadata.createLikelyBranchWeights());
  b_.SetInsertPoint(fired);
  const auto put = [&](size_t offset, Value* value) {
    Value* const address = b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), frame_, offset);
    b_.CreateAlignedStore(value, address, llvm::Align(4));
  };
  put(offsetof(KilnFrame, fired_check), b_.getInt32(static_cast<uint32_t>(node.check)));
  put(offsetof(KilnFrame, fired_index), index);
  put(offsetof(KilnFrame, fired_extent), extent);
  end_tiles();
  b_.CreateRet(b_.getInt32(1));
  b_.SetInsertPoint(held);
}

}  // namespace kiln::codegen
