#pragma once

#include <optional>
#include <string>
#include <variant>

#include "compiler/schedule/graph/stage_graph.h"

namespace kiln::schedule {

/// The most that an expression computes of one element of a tensor: of that, of constants and
/// sizes, and of elements of others at the same place, where the indices say it. Casts around it to
/// wider types of the same kind, and the bits that tensor cores read, stay with the reader.
///
///   float32(max(A[i, k], 0)) * float32(B[k, j])  ->  max(A[i, k], 0)
struct ComputedValue {
  ir::Expr value;
  const ir::TensorRead* element = nullptr;
};

/// Of a part of a stage; nothing where it reads the tensor plainly, or at several places.
std::optional<ComputedValue> find_computed_value(const StageGraph& graph, StageId part,
                                                 TensorId tensor);

}  // namespace kiln::schedule
