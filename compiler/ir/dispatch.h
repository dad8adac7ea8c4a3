#pragma once

#include "compiler/ir/stmt.h"
#include "runtime/core/error.h"

namespace kiln::ir {

// clang-format off
/// Calls `f` with the node as its own type.
template <typename F>
decltype(auto) dispatch(const ExprNode& node, F&& f) {
  switch (node.kind) {
#define EXPR(T) case NodeKind::T: return f(static_cast<const T&>(node));
#include "compiler/ir/nodes.def"
    default: break;
  }
  check_failed("an expression node", __FILE__, __LINE__);
}

template <typename F>
decltype(auto) dispatch(const StmtNode& node, F&& f) {
  switch (node.kind) {
#define STMT(T) case NodeKind::T: return f(static_cast<const T&>(node));
#include "compiler/ir/nodes.def"
    default: break;
  }
  check_failed("a statement node", __FILE__, __LINE__);
}
// clang-format on

}  // namespace kiln::ir
