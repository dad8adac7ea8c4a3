#pragma once

#include <string>
#include <vector>

#include "compiler/ir/stmt.h"
#include "runtime/core/artifact.h"

namespace kiln::ir {

/// A kernel as loops: what the passes rewrite, printed as
/// `fn myscan(X: float32[m, n], scan: float32[m, n]) { ... }`.
struct Kernel {
  std::string name;
  std::vector<VarRef> sizes;          // one a variable of the definition; known at each call
  std::vector<BufferRef> parameters;  // in the order of the arguments
  std::vector<bool> is_output;        // one a parameter
  Stmt body;
  std::vector<RuntimeCheck> checks;   // what Check statements refer to
  std::vector<std::string> notes;     // for the report: what was decided and why, in the user's names
};

}  // namespace kiln::ir
