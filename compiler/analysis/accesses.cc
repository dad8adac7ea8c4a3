// Which elements a statement touches: every load and store with the loops, conditions and
// allocations around it.
//
//   for i in 0..n { if i < m { C[i] = A[i + 1] } }
//     ->
//   load A[i + 1] and store C[i], each in the loop i under i < m
#include "compiler/analysis/accesses.h"

#include <algorithm>
#include <unordered_set>

#include "compiler/ir/mutator.h"

namespace kiln::analysis {
namespace {

using ir::BufferRef;
using ir::Expr;

class CollectAccesses : public ir::Visitor {
 public:
  std::vector<Access> take() {
    for (Access& access : accesses_) {
      access.index_changes = std::ranges::any_of(
          access.indices, [&](const Expr& index) { return reads_stored(index); });
    }
    return std::move(accesses_);
  }

 private:
  using Visitor::visit;

  class ReadsStored : public ir::Visitor {
   public:
    explicit ReadsStored(const std::unordered_set<BufferRef>& stored) : stored_(stored) {}
    bool found = false;

   private:
    using Visitor::visit;
    void visit(const ir::Load& load) override {
      found = found || stored_.contains(load.buffer);
      Visitor::visit(load);
    }
    const std::unordered_set<BufferRef>& stored_;
  };

  bool reads_stored(const Expr& index) const {
    ReadsStored walk(stored_);
    walk(index);
    return walk.found;
  }

  void add(const BufferRef& buffer, const std::vector<Expr>& indices, bool is_store) {
    if (is_store) stored_.insert(buffer);
    accesses_.push_back({.buffer = buffer,
                         .indices = indices,
                         .is_store = is_store,
                         .loops = loops_,
                         .conditions = conditions_,
                         .statement = statement_,
                         .allocates = allocates_});
  }

  template <typename Tree>
  void walk_under(const Expr& condition, const Tree& tree) {
    conditions_.push_back(condition);
    (*this)(tree);
    conditions_.pop_back();
  }

  void visit(const ir::Load& load) override {
    add(load.buffer, load.indices, false);
    Visitor::visit(load);
  }

  void visit(const ir::Call& call) override {
    if (call.op != ir::Operator::IfThenElse || call.type.lanes != 1) return Visitor::visit(call);
    (*this)(call.args[0]);
    walk_under(call.args[0], call.args[1]);
    (*this)(call.args[2]);
  }

  void visit(const ir::Store& store) override {
    statement_ = &store;
    Visitor::visit(store);
    add(store.buffer, store.indices, true);
  }

  void visit(const ir::Atomic& node) override {
    statement_ = &node;
    Visitor::visit(node);
    add(node.buffer, node.indices, true);
    accesses_.back().is_atomic = true;
  }

  void visit(const ir::If& node) override {
    statement_ = &node;
    (*this)(node.condition);
    walk_under(node.condition, node.then_body);
    if (node.else_body) (*this)(node.else_body);
  }

  void visit(const ir::Check& check) override {
    statement_ = &check;
    Visitor::visit(check);
  }

  void visit(const ir::For& loop) override {
    statement_ = &loop;
    (*this)(loop.extent);
    loops_.push_back(&loop);
    (*this)(loop.body);
    loops_.pop_back();
  }

  void visit(const ir::Allocate& allocate) override {
    allocates_.push_back(&allocate);
    Visitor::visit(allocate);
    allocates_.pop_back();
  }

  std::vector<Access> accesses_;
  std::unordered_set<BufferRef> stored_;
  std::vector<const ir::For*> loops_;
  std::vector<Expr> conditions_;
  std::vector<const ir::Allocate*> allocates_;
  const ir::StmtNode* statement_ = nullptr;
};

}  // namespace

bool Access::is_own() const {
  return std::ranges::any_of(allocates,
                             [&](const ir::Allocate* node) { return node->buffer == buffer; });
}

std::vector<Access> accesses_of(const ir::Stmt& stmt) {
  CollectAccesses walk;
  walk(stmt);
  return walk.take();
}

}  // namespace kiln::analysis
