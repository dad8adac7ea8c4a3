#pragma once

#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/schedule/graph/stage_graph.h"

namespace kiln::schedule {

/// Where a stage reads a tensor itself, not by way of stages that are inline in it.
struct PlacesOfTensor {
  std::vector<ir::Expr> reads;  // each that differs once
  bool in_branch = false;       // some read happens only where a condition holds
  bool in_start = false;        // or before the loops of a reduction

  /// Whether each iteration reads one element.
  bool is_one() const { return reads.size() == 1 && !in_branch && !in_start; }
};

PlacesOfTensor places_of_tensor(const StageGraph& graph, StageId reader, TensorId tensor);

}  // namespace kiln::schedule
