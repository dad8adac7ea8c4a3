#include "compiler/schedule/hoist_checks.h"

#include <algorithm>

#include "compiler/ir/mutator.h"

namespace kiln::schedule {
namespace {

class ReadsMemory : public ir::Visitor {
 public:
  bool found = false;

 private:
  using Visitor::visit;
  void visit(const ir::Load&) override { found = true; }
};

bool reads_memory(const ir::Stmt& stmt) {
  ReadsMemory walk;
  walk(stmt);
  return walk.found;
}

/// Whether a statement only checks.
bool is_check(const ir::Stmt& stmt) {
  if (ir::as<ir::Check>(stmt) != nullptr) return true;
  const ir::If* condition = ir::as<ir::If>(stmt);
  if (condition != nullptr) return !condition->else_body && is_check(condition->then_body);
  const ir::Block* block = ir::as<ir::Block>(stmt);
  return block != nullptr && !block->body.empty() &&
         std::all_of(block->body.begin(), block->body.end(), is_check);
}

}  // namespace

HoistedChecks hoist_checks(const ir::Stmt& body, const ir::VarRef& var) {
  HoistedChecks result;
  std::vector<ir::Stmt> stmts = {body};
  if (const ir::Block* block = ir::as<ir::Block>(body)) stmts = block->body;
  std::vector<ir::Stmt> rest;
  for (const ir::Stmt& stmt : stmts) {
    const bool hoists = is_check(stmt) && !ir::uses_var(stmt, var) && !reads_memory(stmt);
    (hoists ? result.checks : rest).push_back(stmt);
  }
  result.rest = ir::Block::make(std::move(rest));
  return result;
}

}  // namespace kiln::schedule
