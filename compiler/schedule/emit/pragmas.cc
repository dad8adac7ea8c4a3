// Follows the pragmas of a loop. How many statements a loop becomes is counted from the inside out,
// so inner loops are unrolled first and outer ones as long as the product stays within the limit,
// as TVM's UnrollLoop counts.
#include "compiler/schedule/emit/pragmas.h"

#include "compiler/ir/build.h"

namespace kiln::schedule {
namespace {

/// Unrolls from the inside out. `statements`: how many come of the statement that was visited last,
/// nothing when a loop is left in it.
class AutoUnroll : public ir::Mutator {
 public:
  explicit AutoUnroll(int64_t most) : most_(most) {}

 private:
  using Mutator::visit;

  ir::Stmt visit(const ir::For& loop) override {
    const ir::Stmt body = (*this)(loop.body);
    const std::optional<int64_t> extent = ir::as_const_int(loop.extent);
    const bool is_copied =
        loop.loop_kind == ir::LoopKind::Serial || loop.loop_kind == ir::LoopKind::Unrolled;
    int64_t count = 0;
    const bool is_known = extent && *extent >= 0 && statements_ && is_copied &&
                          !__builtin_mul_overflow(*extent, *statements_, &count);
    ir::LoopKind kind = loop.loop_kind;
    if (is_known && count <= most_) kind = ir::LoopKind::Unrolled;
    // Lanes are one statement.
    if (loop.loop_kind != ir::LoopKind::Vectorized) {
      statements_ =
          kind == ir::LoopKind::Unrolled && is_known ? std::optional(count) : std::nullopt;
    }
    if (body == loop.body && kind == loop.loop_kind) return &loop;
    return ir::For::make(loop.var, loop.extent, kind, loop.thread, body);
  }

  ir::Stmt visit(const ir::Block& block) override {
    std::vector<ir::Stmt> parts;
    std::optional<int64_t> sum = 0;
    for (const ir::Stmt& part : block.body) {
      parts.push_back((*this)(part));
      sum = sum && statements_ ? std::optional(*sum + *statements_) : std::nullopt;
    }
    statements_ = sum;
    return ir::Block::make(std::move(parts));
  }

  ir::Stmt visit(const ir::If& node) override {
    const ir::Stmt yes = (*this)(node.then_body);
    const std::optional<int64_t> first = statements_;
    if (!node.else_body) return ir::If::make(node.condition, yes, nullptr, node.likely);
    const ir::Stmt no = (*this)(node.else_body);
    statements_ = first && statements_ ? std::optional(*first + *statements_) : std::nullopt;
    return ir::If::make(node.condition, yes, no, node.likely);
  }

  // Tensor intrinsics want their loops whole.
  ir::Stmt visit(const ir::Tensorize& node) override { return counted(&node); }
  ir::Stmt visit(const ir::Store& store) override { return counted(&store); }
  ir::Stmt visit(const ir::Check& check) override { return counted(&check); }
  ir::Stmt visit(const ir::Prefetch& prefetch) override { return counted(&prefetch); }

  ir::Stmt counted(const ir::Stmt& stmt) {
    statements_ = 1;
    return stmt;
  }

  const int64_t most_;
  std::optional<int64_t> statements_ = 0;
};

class KeepLoops : public ir::Mutator {
  using Mutator::visit;

  ir::Stmt visit(const ir::For& loop) override {
    const ir::Stmt body = (*this)(loop.body);
    const bool is_kept = loop.loop_kind == ir::LoopKind::Unrolled;
    if (body == loop.body && !is_kept) return &loop;
    return ir::For::make(loop.var, loop.extent, is_kept ? ir::LoopKind::Serial : loop.loop_kind,
                         loop.thread, body);
  }
};

}  // namespace

ir::Stmt with_pragmas(const Axis& axis, const ir::Stmt& loop) {
  ir::Stmt result = loop;
  if (axis.unrolled_statements > 0) result = AutoUnroll(axis.unrolled_statements)(result);
  if (axis.keeps_loops) result = KeepLoops()(result);
  return result;
}

}  // namespace kiln::schedule
