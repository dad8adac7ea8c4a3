#pragma once

#include "compiler/codegen/cuda_turns.h"

namespace kiln::codegen {

/// Loops over steps of a sum, of which threads have many elements, that have little to do beside
/// those of another part of the launch: what is left over of a sum, or the keys of an attention
/// that a mask ends in.
LoopSet rest_loops(const ir::Stmt& body);

}  // namespace kiln::codegen
