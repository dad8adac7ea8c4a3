#include "compiler/schedule/hoist_checks.h"

#include <algorithm>

#include "compiler/ir/mutator.h"

namespace kiln::schedule {
namespace {

/// Whether a statement only checks, and nothing that memory holds.
bool is_plain_check(const ir::Stmt& stmt) {
  if (const ir::Check* check = ir::as<ir::Check>(stmt)) {
    return !ir::reads_memory(check->index) && !ir::reads_memory(check->extent);
  }
  if (const ir::If* branch = ir::as<ir::If>(stmt)) {
    return !branch->else_body && !ir::reads_memory(branch->condition) &&
           is_plain_check(branch->then_body);
  }
  const ir::Block* block = ir::as<ir::Block>(stmt);
  return block != nullptr && !block->body.empty() &&
         std::all_of(block->body.begin(), block->body.end(), is_plain_check);
}

}  // namespace

HoistedChecks hoist_checks(const ir::Stmt& body, const ir::VarRef& var) {
  HoistedChecks result;
  std::vector<ir::Stmt> stmts = {body};
  if (const ir::Block* block = ir::as<ir::Block>(body)) stmts = block->body;
  std::vector<ir::Stmt> rest;
  for (const ir::Stmt& stmt : stmts) {
    const bool hoists = is_plain_check(stmt) && !ir::uses_var(stmt, var);
    (hoists ? result.checks : rest).push_back(stmt);
  }
  result.rest = ir::Block::make(std::move(rest));
  return result;
}

}  // namespace kiln::schedule
