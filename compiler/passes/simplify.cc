// Each expression in its simplest form under what its loops and guards say; branches that are
// never taken, loops that never run and Checks that never fire are gone.
//
// Walks the statements with what is known at each place: ranges of the loops around and conditions
// of the branches. Expressions are analysis::simplify's matter; decided here is which statements
// are left. Conditions that read memory are no facts, since the body may store there.
#include "compiler/passes/simplify.h"

#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/facts_of.h"

namespace kiln::passes {
namespace {

using namespace ir;

/// Whether a buffer is used at all: an Allocate that nothing uses any more goes.
class FindAccess : public Visitor {
 public:
  explicit FindAccess(const BufferRef& buffer) : buffer_(buffer) {}
  bool found = false;

 private:
  void element(const BufferRef& buffer, const std::vector<Expr>& indices) override {
    found = found || buffer == buffer_;
    Visitor::element(buffer, indices);
  }
  const BufferRef& buffer_;
};

/// An empty block is what is left of a statement that goes.
Stmt nothing() { return Block::make({}); }

bool is_nothing(const Stmt& stmt) {
  const Block* block = as<Block>(stmt);
  return block != nullptr && block->body.empty();
}

class Simplify : public Mutator {
 public:
  explicit Simplify(const Kernel& kernel) : facts_(facts_of_sizes(kernel)) {}

  Expr simplified(const Expr& expr) { return expr ? analysis::simplify(expr, facts_) : expr; }

 private:
  using Mutator::visit;

  // Every expression of a statement comes here whole.
#define EXPR(T) \
  Expr visit(const T& node) override { return analysis::simplify(Expr(&node), facts_); }
#include "compiler/ir/nodes.def"

  Stmt visit(const Block& block) override {
    std::vector<Stmt> kept;
    for (const Stmt& stmt : block.body) {
      Stmt result = (*this)(stmt);
      if (!is_nothing(result)) kept.push_back(std::move(result));
    }
    return kept == block.body ? Stmt(&block) : Block::make(std::move(kept));
  }

  /// A loop of one iteration is its body; one over threads stays, since the launch is made of it.
  Stmt visit(const For& loop) override {
    const Expr extent = simplified(loop.extent);
    if (analysis::can_prove(less_equal(extent, index(0)), facts_)) return nothing();
    if (is_const(extent, 1) && loop.loop_kind != LoopKind::ThreadIndex) {
      return (*this)(substitute(loop.body, {{loop.var, index(0)}}));
    }
    facts_.push_range(loop.var, index(0), extent);
    const Stmt body = (*this)(loop.body);
    facts_.pop();
    if (is_nothing(body)) return nothing();
    if (extent == loop.extent && body == loop.body) return &loop;
    return For::make(loop.var, extent, loop.loop_kind, loop.thread, body);
  }

  Stmt visit(const If& node) override {
    const Expr condition = simplified(node.condition);
    if (is_const(condition, 1)) return (*this)(node.then_body);
    if (is_const(condition, 0)) return node.else_body ? (*this)(node.else_body) : nothing();
    const Stmt then_body = under(condition, node.then_body);
    Stmt else_body = node.else_body ? under(logical_not(condition), node.else_body) : Stmt();
    if (else_body && is_nothing(else_body)) else_body = nullptr;
    if (is_nothing(then_body)) {
      if (!else_body) return nothing();
      return If::make(simplified(logical_not(condition)), else_body);
    }
    if (condition == node.condition && then_body == node.then_body && else_body == node.else_body) {
      return &node;
    }
    return If::make(condition, then_body, else_body, node.likely);
  }

  /// The statement where the condition holds. What it reads from memory may be stored to inside, so
  /// then nothing is concluded from it.
  Stmt under(const Expr& condition, const Stmt& stmt) {
    if (reads_memory(condition)) return (*this)(stmt);
    facts_.push_condition(condition);
    const Stmt result = (*this)(stmt);
    facts_.pop();
    return result;
  }

  /// A predicate that is always true goes, and a store whose predicate is never true.
  Stmt visit(const Store& store) override {
    const Stmt rebuilt = Mutator::visit(store);
    const Store* result = as<Store>(rebuilt);
    const Broadcast* same = as<Broadcast>(result->predicate);
    const Expr scalar = same != nullptr ? same->value : result->predicate;
    if (scalar && is_const(scalar, 0)) return nothing();
    if (!scalar || !is_const(scalar, 1)) return rebuilt;
    return Store::make(result->buffer, result->indices, result->value);
  }

  Stmt visit(const Tensorize& node) override {
    const Stmt body = (*this)(node.body);
    if (is_nothing(body)) return body;
    return body == node.body ? Stmt(&node) : Tensorize::make(node.intrinsic, body);
  }

  /// A check that is proved goes: this is where accesses stop costing anything.
  Stmt visit(const Check& check) override {
    const Expr position = simplified(check.index);
    const Expr extent = simplified(check.extent);
    if (analysis::can_prove(less_equal(index(0), position), facts_) &&
        analysis::can_prove(less(position, extent), facts_)) {
      return nothing();
    }
    if (position == check.index && extent == check.extent) return &check;
    return Check::make(position, extent, check.check);
  }

  Stmt visit(const Allocate& allocate) override {
    const Stmt body = (*this)(allocate.body);
    FindAccess find(allocate.buffer);
    find(body);
    if (!find.found) return body;
    return body == allocate.body ? Stmt(&allocate) : Allocate::make(allocate.buffer, body);
  }

  analysis::Facts facts_;
};

}  // namespace

ir::Kernel simplify(ir::Kernel kernel, const PassContext&) {
  Simplify pass(kernel);
  kernel.body = pass(kernel.body);
  for (Kernel::WorkspaceBuffer& entry : kernel.workspace) {
    entry.offset_bytes = pass.simplified(entry.offset_bytes);
  }
  kernel.workspace_bytes = pass.simplified(kernel.workspace_bytes);
  kernel.workspace_bytes_per_thread = pass.simplified(kernel.workspace_bytes_per_thread);
  return kernel;
}

}  // namespace kiln::passes
