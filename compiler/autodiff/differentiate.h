#pragma once

#include <cstdint>
#include <vector>

#include "compiler/language/kernel.h"

namespace kiln::autodiff {

/// What is differentiated, and with respect to what: any tensors of the kernel outside the cells
/// of scans.
struct GradientRequest {
  std::vector<language::TensorId> outputs;
  std::vector<language::TensorId> inputs;
  /// Dimensions that every head has before those of its output. Gradients have them, too.
  uint32_t leading = 0;
  /// There is one output and no head: the gradient of an input is the whole Jacobian, with the
  /// shape of the output and then that of the input.
  bool identity = false;
};

/// The gradients of all floating outputs with respect to all floating inputs.
GradientRequest whole_request(const language::Kernel& kernel);

/// A kernel that computes gradients. Its tables begin with those of the kernel that was
/// differentiated, so that ids of that are ids of this. Its parameters are the inputs of that (all
/// parameters that are placeholders, in their order), the heads and the gradients.
struct Gradient {
  language::Kernel kernel;
  std::vector<language::TensorId> heads;      // by output; none of an identity
  std::vector<language::TensorId> gradients;  // by input
};

/// The gradients of sum(head * output) over all outputs, where a head is what some loss changes by
/// with its output (an adjoint, a cotangent). The result can be differentiated again.
///
///   Y[i, j] = sum[k](A[i, k] * B[k, j])    ->    A_grad[i, k] = sum[j](Y_head[i, j] * B[k, j])
///                                                B_grad[k, j] = sum[i](Y_head[i, j] * A[i, k])
///
/// Gradients are exact but for rounding. At a corner (abs at 0, equal elements of a maximum) they
/// are one of the values between both sides. An input that no output depends on has the gradient 0.
///
/// Throws InvalidArgument when an output or an input is not a floating tensor, or there is none;
/// Unsupported for a reducer of the user's own on the way.
Gradient differentiate(const language::Kernel& kernel, const GradientRequest& request,
                       const language::Limits& limits = {});

}  // namespace kiln::autodiff
