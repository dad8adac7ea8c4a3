#pragma once

#include <cstdint>

#include "compiler/ir/kernel.h"

namespace kiln::passes {

/// Which outputs of a scan are worth a state of their own.
struct LargeOutputs {
  int64_t bytes = ir::kNontemporalBytes;  // at least
  int64_t row_bytes = 64;  // a multiple of it: of rows that begin within a line, few are aligned
};

/// The pass of this name, for other outputs than it is for: tests have small ones.
ir::Kernel carry_states(ir::Kernel kernel, const LargeOutputs& large);

}  // namespace kiln::passes
