#pragma once

#include <vector>

#include "compiler/ir/stmt.h"

namespace kiln::analysis {

/// One place that reads or writes a buffer, and what stands around it inside the tree searched.
struct Access {
  ir::BufferRef buffer;
  std::vector<ir::Expr> indices;
  bool is_store = false;
  bool is_atomic = false;                      // a store that also reads, in one piece
  std::vector<const ir::For*> loops;           // outermost first
  std::vector<ir::Expr> conditions;            // of the branches taken
  const ir::StmtNode* statement = nullptr;     // the statement it stands in
  std::vector<const ir::Allocate*> allocates;  // around it, outermost first
  /// An index reads memory that the tree stores to: it need not be the same number twice.
  bool index_changes = false;

  /// Whether the buffer is allocated inside the tree.
  bool is_own() const;
};

/// All accesses of the tree, in order.
std::vector<Access> accesses_of(const ir::Stmt& stmt);

}  // namespace kiln::analysis
