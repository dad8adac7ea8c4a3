#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/autodiff/contribution.h"

namespace kiln::autodiff {

/// The adjoint that is to be computed: its stage's axes, which element of the tensor they stand
/// for, and how adjoints of others are read.
struct AdjointSpec {
  TensorId tensor;
  std::vector<AxisId> leading;     // the stage's own axes, in the place of Seeds::leading
  std::vector<AxisId> axes;        // behind them, one a dimension of the tensor
  std::vector<ExprId> elements;    // by dimension: the index in the tensor
  std::vector<ExprId> conditions;  // where the element exists; elsewhere 0 is computed
  std::function<ExprId(TensorId, const std::vector<ExprId>&)> adjoint_of;
  std::string name;
  bool is_cell = false;  // of a scan, where nothing can be scattered
};

/// The sum of all contributions to an element as new stages; the last of them. A read whose indices
/// can be solved for the reader's axes is gathered: what is left to sum over is a reduction, of a
/// product where the reader was one. The rest is scattered, in the order of the reader.
///
///   Y[n, o, y] = sum[c, r](X[n, c, y + r] * F[o, c, r])
///     X_grad[n, c, x] = sum[o, r](if_then_else(.., Y_grad[n, o, x - r], 0) * F[o, c, r])
///   Y[i] = X[idx[i]]
///     X_grad = scatter_add over i, from 0
TensorId accumulate(Builder& builder, const Seeds& seeds, const AdjointSpec& spec,
                    const std::vector<Contribution>& contributions);

}  // namespace kiln::autodiff
