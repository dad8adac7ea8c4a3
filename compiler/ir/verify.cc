// Walks a kernel with what is in scope, and stops at the first breach. Types and lanes of single
// nodes are make()'s matter (ir.cc); checked here is what depends on the place: binding,
// declaration, ranks, inputs that are stored to, barriers outside of threads.
#include "compiler/ir/verify.h"

#include <algorithm>
#include <unordered_set>

#include "compiler/ir/mutator.h"
#include "compiler/ir/print.h"
#include "compiler/ir/races.h"
#include "compiler/language/evaluate/scalar.h"
#include "runtime/core/error.h"

namespace kiln::ir {
namespace {

template <typename... Args>
[[noreturn]] void breach(fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorKind::Internal, "VERIFY", "internal error: {}",
       fmt::format(format, std::forward<Args>(args)...));
}

/// Variables and buffers leave the scope where their loop or allocation ends; each is bound once,
/// so that a copy that shares them with another place is found.
class Verify : public Visitor {
 public:
  explicit Verify(const Kernel& kernel) : kernel_(kernel) {}

  void run() {
    check_signature();
    if (!kernel_.body) breach("kernel {} has no body", kernel_.name);
    for (const Kernel::WorkspaceBuffer& entry : kernel_.workspace) {
      (*this)(entry.offset_bytes);
      declare(entry.buffer);
    }
    if (kernel_.workspace_bytes) (*this)(kernel_.workspace_bytes);
    if (kernel_.workspace_bytes_per_thread) (*this)(kernel_.workspace_bytes_per_thread);
    check_nontemporal();
    (*this)(kernel_.body);
  }

 private:
  using Visitor::visit;

  void check_signature() {
    if (kernel_.is_output.size() != kernel_.parameters.size()) {
      breach("kernel {} has {} parameters but says of {} whether they are outputs", kernel_.name,
             kernel_.parameters.size(), kernel_.is_output.size());
    }
    for (const VarRef& size : kernel_.sizes)
      bind(size);
    for (const VarRef& stride : kernel_.strides)
      bind(stride);
    for (size_t i = 0; i < kernel_.parameters.size(); ++i) {
      const BufferRef& parameter = kernel_.parameters[i];
      for (const Expr& extent : parameter->shape)
        (*this)(extent);
      for (const Expr& stride : parameter->strides)
        (*this)(stride);
      declare(parameter);
      if (!kernel_.is_output[i]) inputs_.insert(parameter);
    }
  }

  void check_nontemporal() {
    for (const BufferRef& buffer : kernel_.nontemporal) {
      const auto found = std::ranges::find(kernel_.parameters, buffer);
      const bool is_output =
          found != kernel_.parameters.end() &&
          kernel_.is_output[static_cast<size_t>(found - kernel_.parameters.begin())];
      if (!is_output) breach("{} is nontemporal but is no output", buffer->name);
    }
  }

  void bind(const VarRef& var) {
    if (var->type != kIndexType) breach("variable {} is bound but is no int64", var->name);
    if (!vars_.insert(var).second) breach("variable {} is bound twice", var->name);
  }

  void declare(const BufferRef& buffer) {
    if (!buffers_.insert(buffer).second) breach("buffer {} is declared twice", buffer->name);
  }

  void visit(const Var& var) override {
    if (vars_.count(VarRef(&var)) == 0)
      breach("variable {} is used where it is not bound", var.name);
  }

  void visit(const IntImm& imm) override {
    if (imm.type.lanes != 1) breach("constant {} has {} lanes", imm.value, imm.type.lanes);
    if (language::Scalar::of_int(imm.type.element, imm.value).integer != imm.value) {
      breach("constant {} does not fit in {}", imm.value, imm.type.element);
    }
  }

  void visit(const FloatImm& imm) override {
    if (imm.type.lanes != 1) breach("constant {} has {} lanes", imm.value, imm.type.lanes);
  }

  void visit(const Binary& node) override {
    check_operands(node.op, {node.a->type.element, node.b->type.element}, Expr(&node));
    Visitor::visit(node);
  }

  void visit(const Call& node) override {
    std::vector<DType> types;
    for (const Expr& arg : node.args)
      types.push_back(arg->type.element);
    check_operands(node.op, types, Expr(&node));
    Visitor::visit(node);
  }

  static void check_operands(Operator op, const std::vector<DType>& types, const Expr& expr) {
    try {
      language::result_type(op, types);
    } catch (const Error& error) {
      breach("{} in {}", error.message(), expr);
    }
  }

  void visit(const TensorRead& read) override {
    breach("{} reads a tensor of the definition", Expr(&read));
  }
  void visit(const Reduce& reduce) override {
    breach("{} is a reduction of the definition", Expr(&reduce));
  }

  void visit(const Store& store) override {
    if (inputs_.count(store.buffer) > 0) breach("input {} is stored to", store.buffer->name);
    if (store.value->type.element != store.buffer->type) {
      breach("a {} is stored to {}, which holds {}", store.value->type.element, store.buffer->name,
             store.buffer->type);
    }
    Visitor::visit(store);
  }

  void visit(const Atomic& node) override {
    if (inputs_.count(node.buffer) > 0) breach("input {} is stored to", node.buffer->name);
    Visitor::visit(node);
  }

  /// After flatten_storage there is one index, whatever the shape.
  void element(const BufferRef& buffer, const std::vector<Expr>& indices) override {
    if (buffers_.count(buffer) == 0) {
      breach("buffer {} is used where it is not declared", buffer->name);
    }
    if (indices.size() != buffer->shape.size() && indices.size() != 1) {
      breach("buffer {} has {} dimensions but is accessed with {} indices", buffer->name,
             buffer->shape.size(), indices.size());
    }
    Visitor::element(buffer, indices);
  }

  void visit(const For& loop) override {
    (*this)(loop.extent);
    bind(loop.var);
    const bool is_thread = loop.loop_kind == LoopKind::ThreadIndex;
    thread_loops_ += is_thread ? 1 : 0;
    (*this)(loop.body);
    thread_loops_ -= is_thread ? 1 : 0;
    vars_.erase(loop.var);
  }

  void visit(const Allocate& allocate) override {
    for (const Expr& extent : allocate.buffer->shape)
      (*this)(extent);
    declare(allocate.buffer);
    (*this)(allocate.body);
    buffers_.erase(allocate.buffer);
  }

  void visit(const Check& check) override {
    if (check.check < 0 || check.check >= static_cast<int>(kernel_.checks.size())) {
      breach("check #{} is not one of the {} of the kernel", check.check, kernel_.checks.size());
    }
    Visitor::visit(check);
  }

  void visit(const Dot& dot) override {
    if (dot.a->type.element == DType::Bool || dot.b->type.element == DType::Bool ||
        dot.type.element == DType::Bool) {
      breach("{} multiplies bools", Expr(&dot));
    }
    Visitor::visit(dot);
  }

  void visit(const Barrier&) override {
    if (thread_loops_ == 0) breach("a barrier stands outside the loops over threads");
  }
  void visit(const Shuffle& node) override {
    if (thread_loops_ == 0) breach("a shuffle stands outside the loops over threads");
    if (node.buffer->scope != Scope::Local) breach("a shuffle fills {}", node.buffer->name);
    Visitor::visit(node);
  }

  void visit(const Background& node) override {
    if (thread_loops_ == 0)
      breach("a copy in the background stands outside the loops over threads");
    if (waits_in(node.body).at_all()) breach("threads wait for each other in the background");
    Visitor::visit(node);
  }
  void visit(const Await&) override {
    if (thread_loops_ == 0) breach("an await stands outside the loops over threads");
  }

  const Kernel& kernel_;
  std::unordered_set<VarRef> vars_;
  std::unordered_set<BufferRef> buffers_;
  std::unordered_set<BufferRef> inputs_;
  int thread_loops_ = 0;
};

}  // namespace

void verify(const Kernel& kernel) { Verify(kernel).run(); }

}  // namespace kiln::ir
