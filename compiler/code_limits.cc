// How large loops may become: statements after any pass, and instructions before LLVM or NVRTC sees
// them. What is counted follows LLVM's compile times: see kLoopsOfASum and kFunction. NVRTC takes
// longer for the same.
#include "compiler/code_limits.h"

#include <algorithm>
#include <vector>

#include "compiler/ir/build.h"
#include "compiler/ir/mutator.h"
#include "runtime/core/called.h"
#include "runtime/core/error.h"

namespace kiln {
namespace {

class CountStatements : public ir::Visitor {
 public:
  int64_t count = 0;

 private:
  using Visitor::visit;
#define STMT(T)                            \
  void visit(const ir::T& node) override { \
    ++count;                               \
    Visitor::visit(node);                  \
  }
#include "compiler/ir/nodes.def"
};

/// About how many instructions the loops become on a CPU with registers of 64 bytes; as many more
/// as LLVM takes the time of.
class EstimateCode : public ir::Visitor {
 public:
  int64_t total() const { return instructions_ + sums_ * loops_ / kLoopsOfASum; }

 private:
  int64_t instructions_ = 0;
  int64_t copies_ = 1;  // by the loops around that are unrolled later
  int64_t loops_ = 0;
  int64_t sums_ = 0;  // places that a loop leaves alone while it stores to them
  std::vector<const ir::For*> around_;

  // LLVM keeps such a place in a register, for which it looks at the whole function again.
  static constexpr int64_t kLoopsOfASum = 60;
  static constexpr int64_t kFunction =
      36;  // exp and its like are written out; as long as LLVM takes for them
  static constexpr int64_t kBranch = 8;

  static int64_t registers(const ir::Type& type) {
    return std::max<int64_t>(1, int64_t{type.lanes} * size_of(type.element) / 64);
  }

  using Visitor::visit;
  void visit(const ir::Binary& node) override {
    instructions_ += copies_ * registers(node.type);
    Visitor::visit(node);
  }
  void visit(const ir::Load& node) override {
    instructions_ += copies_ * registers(node.type);
    Visitor::visit(node);
  }
  void visit(const ir::Call& node) override {
    const bool chooses = node.op == ir::Operator::Select || node.op == ir::Operator::IfThenElse;
    instructions_ += copies_ * registers(node.type) * (chooses ? 1 : kFunction);
    Visitor::visit(node);
  }
  void visit(const ir::Dot& node) override {
    instructions_ += copies_ * node.group() * registers(node.type);
    Visitor::visit(node);
  }
  void visit(const ir::Store& node) override {
    const auto moves = [&](const ir::For* loop) {
      return std::ranges::any_of(node.indices,
                                 [&](const ir::Expr& index) { return uses_var(index, loop->var); });
    };
    for (size_t i = around_.size(); i > 0 && !moves(around_[i - 1]); --i)
      ++sums_;
    instructions_ += copies_ * registers(node.value->type);
    Visitor::visit(node);
  }
  void visit(const ir::If& node) override {
    instructions_ += copies_ * kBranch;
    Visitor::visit(node);
  }
  void visit(const ir::For& node) override {
    if (node.loop_kind == ir::LoopKind::Unrolled) return unrolled(node);
    instructions_ += copies_ * kBranch;
    ++loops_;
    around_.push_back(&node);
    Visitor::visit(node);
    around_.pop_back();
  }
  /// unroll_loops keeps those of a GPU, whose extents it has bounded.
  void unrolled(const ir::For& node) {
    const int64_t outer = copies_;
    copies_ *= ir::as_const_int(node.extent).value_or(1);
    Visitor::visit(node);
    copies_ = outer;
  }
};

}  // namespace

void check_size(const ir::Kernel& kernel, const CompileLimits& limits) {
  CountStatements walk;
  walk(kernel.body);
  if (walk.count > limits.statements) {
    fail(ErrorKind::ResourceExhausted, "STATEMENT_LIMIT",
         "{} has {} statements when lowered; the limit is {}; unroll less, or make several kernels "
         "of it",
         called(kernel.name), walk.count, limits.statements);
  }
}

void check_code(const ir::Kernel& kernel, const PassContext& context) {
  if (!context.target.traits().is_compiled) return;
  EstimateCode walk;
  walk(kernel.body);
  if (walk.total() > context.options.limits.code) {
    fail(ErrorKind::ResourceExhausted, "CODE_LIMIT",
         "{} becomes about {} instructions; the limit is {}; unroll or vectorize less",
         called(kernel.name), walk.total(), context.options.limits.code);
  }
}

}  // namespace kiln
