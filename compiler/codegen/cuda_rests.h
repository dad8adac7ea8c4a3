#pragma once

#include "compiler/codegen/cuda_turns.h"

namespace kiln::codegen {

/// Loops over steps of sums, of which threads have many elements, that have little to do beside
/// those of another part of a launch with several sums: keys of a wide attention that a mask ends
/// in, or that are left over.
LoopSet rest_loops(const ir::Stmt& body);

}  // namespace kiln::codegen
