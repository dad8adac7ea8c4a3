#pragma once

#include "compiler/ir/stmt.h"

namespace kiln::passes {

/// A loop over neighbours whose accesses to global and shared memory are vectors of up to 16 bytes,
/// where they lie side by side and are known to be aligned; all else stays one by one. What touches
/// registers alone is unrolled. Null where nothing of memory can be a vector. `body` is that of the
/// loop, whose extent is `extent`. In the background a copy of neighbours stays one store of one
/// load.
ir::Stmt with_vector_accesses(const ir::For& loop, const ir::Stmt& body, int64_t extent,
                              bool is_background);

}  // namespace kiln::passes
