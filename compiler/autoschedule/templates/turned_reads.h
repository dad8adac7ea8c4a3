#pragma once

#include <vector>

#include "compiler/autoschedule/recognise/structure.h"
#include "compiler/autoschedule/templates/step_writer.h"

namespace kiln::autoschedule {

/// Tensors that a stage reads along `across` where its last data axis steps over rows, and which
/// blocks can have in their own order; none where one of them cannot be.
std::vector<const ir::TensorRead*> turned_reads(const StageGraph& graph, StageId stage,
                                                AxisId across);

/// The copy of a tensor for a block, with vectors of so many lanes along what lies side by side in
/// memory: as many of them are a square that is turned in registers (codegen/llvm_interleave.cc).
/// `layout`: the loops of `stage` that the copy has dimensions for, last the rows of the square and
/// then its columns; it is computed at the loop `at`.
void copy_turned(StepWriter& steps, StageId stage, const ir::TensorRead& read,
                 const std::vector<AxisId>& layout, AxisId at, int64_t lanes);

}  // namespace kiln::autoschedule
