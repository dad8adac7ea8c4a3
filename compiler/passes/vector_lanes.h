#pragma once

#include <string>

#include "compiler/ir/stmt.h"

namespace kiln::passes {

/// The body of a loop with its variable replaced by the vector base, base + 1, ... of `lanes`
/// values.
struct VectorLanes {
  ir::Stmt body;         // null when it cannot be done
  std::string obstacle;  // why it cannot, after "because"
};

/// `reassociate`: the lanes of a reduction may be combined in any order. Indices must be flat.
VectorLanes vectorize(const ir::Stmt& body, const ir::VarRef& var, const ir::Expr& base, int lanes,
                      bool reassociate);

}  // namespace kiln::passes
