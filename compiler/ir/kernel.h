#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/ir/stmt.h"
#include "runtime/core/artifact.h"
#include "runtime/core/error.h"

namespace kiln::ir {

/// From this size on non-temporal stores may be better for an output: a consumer might not find it
/// in the caches anyhow (analysis/nontemporal.h).
constexpr int64_t kNontemporalBytes = int64_t{8} << 20;
/// And rows begin at multiples of so many bytes. Others end within a line that the next one goes on
/// with, of which a part is in a cache then: X + B of 3000 x 1001 takes 0.65 ms stored plainly on a
/// Zen 4 and 0.78 with those rows past the caches that may be, of 3000 x 1000 0.62 and 0.44.
constexpr int64_t kNontemporalRow = 32;

/// A kernel as loops: what the passes rewrite, printed as
/// `fn myscan(X: float32[m, n], scan: float32[m, n]) { ... }`.
struct Kernel {
  std::string name;
  std::vector<VarRef> sizes;          // one a variable of the definition; known at each call
  std::vector<BufferRef> parameters;  // in the order of the arguments
  std::vector<bool> is_output;        // one a parameter
  Stmt body;

  // Filled by plan_storage: buffers that live in the workspace. Other buffers keep their Allocate
  // and are small enough for the stack.
  struct WorkspaceBuffer {
    BufferRef buffer;
    Expr offset_bytes;        // over sizes; a multiple of 64
    bool per_thread = false;  // one copy for each thread of a parallel loop
  };
  std::vector<WorkspaceBuffer> workspace;
  Expr workspace_bytes;  // over sizes; null before plan_storage
  Expr workspace_bytes_per_thread;

  // Filled by flatten_storage for the strided layout: one variable for each dimension of each
  // parameter, in order. Empty for the compact layout.
  std::vector<VarRef> strides;

  // Filled by bypass_caches: outputs whose vectors get non-temporal stores.
  std::vector<BufferRef> nontemporal;

  // Where the user wrote the step that says how a loop runs, and the stage that a buffer holds.
  // Refusals name these lines; copies that passes make have none.
  std::unordered_map<VarRef, SourceLocation> loop_lines;
  std::unordered_map<BufferRef, SourceLocation> buffer_lines;

  std::vector<RuntimeCheck> checks;  // what Check statements refer to
  std::vector<std::string> notes;  // for the report: what was decided and why, in the user's names
};

}  // namespace kiln::ir
