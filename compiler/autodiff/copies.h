#pragma once

#include <vector>

#include "compiler/autodiff/builder.h"

namespace kiln::autodiff {

/// Computes where it is read what is read once only, as it is: the adjoint of a padded image that
/// is cut out of it, or that of a transposed matrix. Stages before `first` stay as they are, as do
/// parameters.
///
///   P_grad[y] = sum[r](..[y - r]..), X_grad[x] = P_grad[x + 1]  ->  X_grad[x] = sum[r](..[x + 1 -
///   r]..)
void inline_copied(Builder& builder, StageId first, const std::vector<TensorId>& parameters);

}  // namespace kiln::autodiff
