#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "compiler/tile/thread_layout.h"

namespace kiln::tile {

/// Loops around a statement; of one iteration there is none.
class ThreadNest {
 public:
  /// The place of an iteration.
  ir::Expr add(const char* name, int64_t extent);
  ir::Stmt around(ir::Stmt body, ir::LoopKind kind) const;

 private:
  std::vector<std::pair<ir::VarRef, int64_t>> loops_;
};

/// Where an element is, one a dimension of its tile.
using Indices = std::vector<Along>;

/// An element of rows and columns in the registers of its thread: groups of rows and of columns,
/// rows and columns of a group.
std::vector<ir::Expr> own_place(const Indices& at);

/// body(place) for each element that a thread has of a tile of a shape, written out.
ir::Stmt for_each_element(const Shares& shares,
                          const std::function<ir::Stmt(const Indices&)>& body);

}  // namespace kiln::tile
