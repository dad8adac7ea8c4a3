#pragma once

#include <vector>

#include "compiler/ir/stmt.h"

namespace kiln::passes {

/// A variable that runs over 0 .. extent - 1.
struct LoopRange {
  ir::VarRef var;
  ir::Expr extent;
};

/// One place that reads or writes a buffer, and the loops around it inside the tree searched,
/// outermost first.
struct Access {
  ir::BufferRef buffer;
  std::vector<ir::Expr> indices;
  bool is_store = false;
  std::vector<const ir::For*> loops;
  const ir::StmtNode* statement = nullptr;  // the statement it stands in
};

/// All accesses of the tree, in order, but for those of buffers allocated in it.
std::vector<Access> accesses_of(const ir::Stmt& stmt);

/// Whether two accesses with different values of `vars` never touch the same element: one iteration
/// of these loops then needs nothing of another. Variables of `moving` may have any of their values
/// in each access, all others stand still. False: not shown.
///
/// `places` are the indices of one buffer, per dimension.
bool are_apart(const std::vector<std::vector<ir::Expr>>& places, const std::vector<LoopRange>& vars,
               const std::vector<LoopRange>& moving);

}  // namespace kiln::passes
