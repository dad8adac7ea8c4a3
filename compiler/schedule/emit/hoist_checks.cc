// Moves checks of data out of a loop where they do not depend on it.
//
//   for j { check idx[i] < n; Y[i, j] = X[idx[i], j] }  ->  check idx[i] < n; for j { .. }
//
// Loop-invariant code motion, for checks alone: the loop that is left is free to be vectors. What
// it costs otherwise is in docs/performance/gathers.md.
#include "compiler/schedule/emit/hoist_checks.h"

#include <algorithm>
#include <unordered_set>

#include "compiler/ir/mutator.h"

namespace kiln::schedule {
namespace {

class BuffersOf : public ir::Visitor {
 public:
  std::unordered_set<ir::BufferRef> loaded;
  std::unordered_set<ir::BufferRef> stored;

 private:
  using Visitor::visit;
  void visit(const ir::Load& load) override {
    loaded.insert(load.buffer);
    Visitor::visit(load);
  }
  void visit(const ir::Store& store) override {
    stored.insert(store.buffer);
    Visitor::visit(store);
  }
};

bool is_check(const ir::Stmt& stmt) {
  if (ir::as<ir::Check>(stmt) != nullptr) return true;
  if (const ir::If* branch = ir::as<ir::If>(stmt)) {
    return !branch->else_body && is_check(branch->then_body);
  }
  const ir::Block* block = ir::as<ir::Block>(stmt);
  return block != nullptr && !block->body.empty() &&
         std::all_of(block->body.begin(), block->body.end(), is_check);
}

/// Whether a check reads what the loop writes.
bool may_change(const ir::Stmt& check, const std::unordered_set<ir::BufferRef>& stored) {
  BuffersOf buffers;
  buffers(check);
  return std::any_of(buffers.loaded.begin(), buffers.loaded.end(),
                     [&](const ir::BufferRef& buffer) { return stored.contains(buffer); });
}

}  // namespace

HoistedChecks hoist_checks(const ir::Stmt& body, const ir::VarRef& var) {
  HoistedChecks result;
  std::vector<ir::Stmt> stmts = {body};
  if (const ir::Block* block = ir::as<ir::Block>(body)) stmts = block->body;
  std::vector<ir::Stmt> rest;
  BuffersOf buffers;
  buffers(body);
  for (const ir::Stmt& stmt : stmts) {
    const bool hoists =
        is_check(stmt) && !ir::uses_var(stmt, var) && !may_change(stmt, buffers.stored);
    (hoists ? result.checks : rest).push_back(stmt);
  }
  result.rest = ir::Block::make(std::move(rest));
  return result;
}

}  // namespace kiln::schedule
