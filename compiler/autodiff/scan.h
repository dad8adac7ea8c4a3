#pragma once

#include <map>
#include <vector>

#include "compiler/autodiff/contribution.h"
#include "compiler/autodiff/sweep.h"

namespace kiln::autodiff {

/// What the adjoints of a scan's results are, and what the scan gives to what it reads.
struct ScanAdjoints {
  std::map<uint32_t, Adjoint> of_output;
  std::vector<Contribution> contributions;
  /// Reductions of the cell that are the same at each step.
  std::vector<Node> constants;
};

/// Differentiates a scan through time. `given` has, by output, the adjoint that comes from its
/// readers; `cell` the stages of the cell, states apart, in their order.
///
///   H[t] = f(H[t - 1], X[t])     L[t] = H_given[t] + L[t + 1] * df/dH at t + 1, a scan in reverse
///                                X_grad[t] = L[t] * df/dX, for all t at once
ScanAdjoints differentiate_scan(Builder& builder, Seeds& seeds, Activity& activity, StageId scan,
                                const std::vector<StageId>& cell,
                                const std::map<uint32_t, TensorId>& given);

}  // namespace kiln::autodiff
