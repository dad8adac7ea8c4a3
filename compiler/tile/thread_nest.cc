// Loops over what a thread has of a tile.
#include "compiler/tile/thread_nest.h"

#include "compiler/ir/build.h"

namespace kiln::tile {

using ir::Expr;
using ir::Stmt;

Expr ThreadNest::add(const char* name, int64_t extent) {
  if (extent == 1) return ir::index(0);
  loops_.emplace_back(ir::Var::make(name), extent);
  return loops_.back().first;
}

Stmt ThreadNest::around(Stmt body, ir::LoopKind kind) const {
  for (auto loop = loops_.rbegin(); loop != loops_.rend(); ++loop)
    body = ir::For::make(loop->first, ir::index(loop->second), kind, std::move(body));
  return body;
}

std::vector<Expr> own_place(const Indices& at) {
  return {at[0].outer, at[1].outer, at[0].inner, at[1].inner};
}

Stmt for_each_element(const Shares& shares, const std::function<Stmt(const Indices&)>& body) {
  ThreadNest nest;
  const Expr rows = nest.add("rows", shares[0].outer);
  const Expr columns = nest.add("columns", shares[1].outer);
  const Expr row = nest.add("row", shares[0].inner);
  const Expr column = nest.add("column", shares[1].inner);
  return nest.around(body({shares[0].at(rows, row), shares[1].at(columns, column)}),
                     ir::LoopKind::Unrolled);
}

}  // namespace kiln::tile
