#pragma once

#include <string>
#include <variant>

#include "compiler/schedule/graph/stage_graph.h"

namespace kiln::schedule {

/// What a stage reads of a tensor where a condition holds, with a constant elsewhere, or what it
/// computes of single elements (computed_value.h):
///
///   if_then_else(1 <= y + r && y + r <= h, X[c, y + r - 1], 0)
///     ->
///   X.padded[c, y + r]   where   X.padded[ax0, ax1] = if_then_else(1 <= ax1 && ax1 <= h, X[ax0,
///   ax1 - 1], 0)
struct PaddedRead {
  ir::Expr value;                 // as it stands in the stage
  std::vector<ir::Expr> indices;  // of the copy, where the value stands
  std::vector<ir::Expr> shape;    // of the copy: all values that the indices of the tensor have
  std::vector<ir::VarRef> axes;   // of the copy, from 0
  ir::Expr body;                  // of the copy
};

/// The one such read of a tensor in the bodies of a stage and of the reductions taken out of it, or
/// why there is none that can become a stage: a condition must be about the indices of the read,
/// and keep it inside of the tensor.
std::variant<PaddedRead, std::string> find_padded_read(const StageGraph& graph, StageId reader,
                                                       TensorId tensor);

/// Makes the stage, and the reductions taken out of it, read the copy.
void read_padded(StageGraph& graph, StageId reader, const PaddedRead& padded, StageId copy);

}  // namespace kiln::schedule
