#pragma once

#include <vector>

#include "compiler/autoschedule/recognise/instructions.h"
#include "compiler/autoschedule/recognise/structure.h"

namespace kiln::autoschedule {

/// What one element of a stage does.
struct ElementWork {
  Busy busy;                                 // of vectors of the lanes that were asked for
  std::vector<const ir::TensorRead*> reads;  // of memory, each once; nodes of the bodies
};

/// Of bodies with all that is inline written out, which outlive it. What the last step of a scan
/// has left is in registers.
ElementWork element_work(const StageGraph& graph, const std::vector<ir::Expr>& bodies,
                         const Machine& machine, int64_t lanes);

}  // namespace kiln::autoschedule
