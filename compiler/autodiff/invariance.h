#pragma once

#include <set>
#include <vector>

#include "compiler/autodiff/builder.h"

namespace kiln::autodiff {

/// Tensors that none of `outputs` depends on, though it is computed from them: the largest element
/// that a softmax takes off before it exponentiates, since it cancels. Nothing flows through them.
std::set<TensorId> find_cancelled(Builder& builder, const std::vector<TensorId>& outputs);

}  // namespace kiln::autodiff
