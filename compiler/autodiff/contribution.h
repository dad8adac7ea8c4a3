#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "compiler/autodiff/builder.h"

namespace kiln::autodiff {

/// What one read of a tensor adds to the tensor's adjoint: `value`, for all iterations of `loops`
/// where the conditions hold, at the element that is read. Axes of `loops` are those of the reader
/// and of the reductions around the read, outermost first.
struct Contribution {
  TensorId tensor;
  std::vector<ExprId> indices;
  std::vector<AxisId> loops;
  std::vector<ExprId> conditions;
  ExprId value = 0;
  /// Loops that must equal a leading axis, of the output whose head is the identity.
  std::vector<std::pair<AxisId, AxisId>> diagonal;
};

/// Where the adjoint of a tensor is: in a tensor that has, along one dimension, `offset` elements
/// before it. The dimension counts leading axes, too.
struct Adjoint {
  TensorId tensor;
  size_t dimension = 0;
  int64_t offset = 0;
};

/// The adjoint of a tensor while it is unknown: a placeholder, read at the leading axes of what is
/// differentiated, then at the tensor's own.
class Seeds {
 public:
  explicit Seeds(Builder& builder) : b_(builder) {}

  /// Axes in front of those of every adjoint, one for each dimension that heads have before those
  /// of their outputs. They stand for axes of whatever stage the expression ends in.
  std::vector<AxisId> leading;

  TensorId of(TensorId tensor);
  std::optional<TensorId> tensor_of(TensorId seed) const;
  /// The adjoint of `tensor` at these indices.
  ExprId read(TensorId tensor, const std::vector<ExprId>& indices);

 private:
  Builder& b_;
  std::map<TensorId, TensorId> seeds_;
  std::map<TensorId, TensorId> tensors_;
};

}  // namespace kiln::autodiff
