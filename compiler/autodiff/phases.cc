// The adjoint of a read with a stride, X[2*i + r], has for odd elements another sum than for even
// ones. With one axis for both, each would have to ask which it is at every term, and nothing would
// be a contraction. With an axis of its own for the remainder the terms of an element stand side by
// side, as those of the convolution did (Shi et al. 2016, "Is the deconvolution layer the same as a
// convolutional layer?").
//
//   X_grad[a] = sum[r](if (a - r)%2 == 0 and ..: Y_grad[(a - r)//2] * F[r])
//   X_grad_phases[p, q] = sum[u](Y_grad[q - u] * F[p + 2*u])      X_grad[a] = X_grad_phases[a%2,
//   a//2]
#include "compiler/autodiff/phases.h"

#include <fmt/format.h>

namespace kiln::autodiff {
namespace {

/// The axis whose remainder a phase is of, and what is added to it.
struct OfAxis {
  Phase phase;
  int64_t shift;
};

std::optional<OfAxis> phase_of(Builder& b, AxisId axis, const std::vector<Phase>& phases) {
  for (const Phase& phase : phases) {
    const auto shift = add(b.polynomial(phase.value), b.polynomial(b.axis(axis)), -1);
    if (!shift) continue;
    if (const std::optional<int64_t> constant = shift->as_constant())
      return OfAxis{phase, *constant};
  }
  return std::nullopt;
}

int64_t floor_div(int64_t a, int64_t by) { return a / by - (a % by < 0 ? 1 : 0); }

}  // namespace

std::optional<InPhases> in_phases(Builder& b, const std::vector<AxisId>& axes,
                                  const std::vector<Phase>& phases) {
  InPhases result;
  std::vector<AxisId> quotients;
  std::vector<ExprId> at_quotients;
  for (const AxisId axis : axes) {
    const Axis bounds = b.definition().axes[axis];
    const std::string name(b.names().axes[axis]);
    const std::optional<OfAxis> found = phase_of(b, axis, phases);
    if (!found) {
      quotients.push_back(b.data_axis(bounds.extent, name));
      at_quotients.push_back(b.axis(axis));
      result.old[axis] = b.axis(quotients.back());
      continue;
    }
    const auto& [phase, shift] = *found;
    const ExprId by = b.integer(phase.stride);
    const ExprId value = b.add(b.axis(axis), b.integer(shift));
    // The quotients of shift, shift + 1, .. shift + extent - 1, counted from 0.
    const int64_t first = floor_div(shift, phase.stride);
    const ExprId last =
        b.op(Operator::FloorDiv, {b.add(b.tidied(bounds.extent), b.integer(shift - 1)), by});
    quotients.push_back(b.data_axis(b.add(last, b.integer(1 - first)), name));
    at_quotients.push_back(b.sub(b.op(Operator::FloorDiv, {value, by}), b.integer(first)));
    ExprId element = b.mul(by, b.add(b.axis(quotients.back()), b.integer(first)));
    const ExprId remainder = b.op(Operator::FloorMod, {value, by});
    if (phase.count > 1) {
      result.axes.push_back(b.data_axis(b.integer(phase.count), fmt::format("{}_phase", name)));
      result.at.push_back(remainder);
      element = b.add(element, b.axis(result.axes.back()));
    }
    if (phase.count < phase.stride)
      result.conditions.push_back(b.op(Operator::Less, {remainder, b.integer(phase.count)}));
    result.old[axis] = b.sub(element, b.integer(shift));
  }
  if (result.axes.empty() && result.conditions.empty()) return std::nullopt;
  result.axes.insert(result.axes.end(), quotients.begin(), quotients.end());
  result.at.insert(result.at.end(), at_quotients.begin(), at_quotients.end());
  return result;
}

}  // namespace kiln::autodiff
