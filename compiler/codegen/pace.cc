// How often the loops of a kernel look whether their call was cancelled: often enough that a call
// ends within 200 ms of its cancellation, seldom enough that nobody can measure it.
//
//   for i in 0..4096 { for j in 0..1048576 { .. } }    i looks before each iteration
//   for i in 0..n { C[i] = A[i] + B[i] }               i runs in blocks, and looks between them
//   for i in 0..64 { C[i] = A[i] + B[i] }              does not look
//
// What is counted is the lanes of what is computed, loaded and stored. A loop whose extent only the
// call knows may be of any length, and so may what is around it.
#include "compiler/codegen/pace.h"

#include <algorithm>
#include <optional>

#include "compiler/ir/build.h"
#include "compiler/ir/mutator.h"

namespace kiln::codegen {
namespace {

/// Operations between two looks: 1 ms where each takes a quarter of a nanosecond, 100 ms where each
/// waits for memory.
constexpr int64_t kBetweenLooks = int64_t{1} << 22;
/// Blocks of fewer iterations are not worth a loop of their own: a look takes about two operations.
constexpr int64_t kSmallestBlock = 64;
/// exp and its like, as in code_limits.cc.
constexpr int64_t kFunction = 36;

/// Operations of a statement, kBetweenLooks at most; none where a loop in it may be of any length.
class CountOperations : public ir::Visitor {
 public:
  std::optional<int64_t> total() const {
    return is_bounded_ ? std::optional(total_) : std::nullopt;
  }

 private:
  using Visitor::visit;

  void add(int64_t operations) { total_ = std::min(total_ + operations, kBetweenLooks); }

  void add_expr(const ir::Type& type, int64_t each = 1) { add(each * std::max(1, type.lanes)); }

  void visit(const ir::Binary& node) override {
    add_expr(node.type);
    Visitor::visit(node);
  }
  void visit(const ir::Load& node) override {
    add_expr(node.type);
    Visitor::visit(node);
  }
  void visit(const ir::Cast& node) override {
    add_expr(node.type);
    Visitor::visit(node);
  }
  void visit(const ir::Call& node) override {
    const bool chooses = node.op == ir::Operator::Select || node.op == ir::Operator::IfThenElse;
    add_expr(node.type, chooses ? 1 : kFunction);
    Visitor::visit(node);
  }
  void visit(const ir::VectorReduce& node) override {
    add_expr(node.vector->type);
    Visitor::visit(node);
  }
  void visit(const ir::Dot& node) override {
    add_expr(node.type, node.group());
    Visitor::visit(node);
  }
  void visit(const ir::Store& node) override {
    add_expr(node.value->type);
    Visitor::visit(node);
  }
  void visit(const ir::For& loop) override {
    const int64_t before = total_;
    total_ = 1;  // what counts the iterations
    Visitor::visit(loop);
    const std::optional<int64_t> extent = ir::as_const_int(loop.extent);
    if (!extent) is_bounded_ = false;
    const int64_t body = total_;
    total_ = before;
    if (extent && *extent > 0) add(*extent > kBetweenLooks / body ? kBetweenLooks : *extent * body);
  }

  int64_t total_ = 0;
  bool is_bounded_ = true;
};

std::optional<int64_t> operations_of(const ir::Stmt& stmt) {
  CountOperations count;
  count(stmt);
  return count.total();
}

}  // namespace

Looks looks_of(const ir::For& loop) {
  const std::optional<int64_t> body = operations_of(loop.body);
  if (!body) return {Pace::Each};
  const std::optional<int64_t> extent = ir::as_const_int(loop.extent);
  const int64_t block = kBetweenLooks / (*body + 1);
  if (extent && *extent <= block) return {};
  return block < kSmallestBlock ? Looks{Pace::Each} : Looks{Pace::Blocks, block};
}

}  // namespace kiln::codegen
