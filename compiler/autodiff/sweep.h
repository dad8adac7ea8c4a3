#pragma once

#include <set>
#include <vector>

#include "compiler/autodiff/contribution.h"

namespace kiln::autodiff {

/// A tensor with what computes an element of it. A reduction stands in a body at its top or not at
/// all (see lift_reductions()).
struct Node {
  TensorId tensor;
  std::vector<AxisId> axes;
  ExprId body = 0;
  /// Of a reduction that was lifted out of another node: the axes there that these stand for.
  std::vector<AxisId> origin;
  bool is_stored = true;  // the tensor's elements are the body's values; not so of updates
};

/// Which expressions depend on tensors that are differentiated with respect to, through floating
/// numbers all the way.
class Activity {
 public:
  Activity(const Builder& builder, std::set<TensorId> tensors)
      : b_(builder), tensors_(std::move(tensors)) {}

  bool is_active(ExprId expr);
  bool is_active(TensorId tensor) const { return tensors_.contains(tensor); }
  /// Expressions that read the tensor must not have been asked for, or be forgotten.
  void add(TensorId tensor) { tensors_.insert(tensor); }
  void forget_expressions() { known_.clear(); }

 private:
  bool look(ExprId expr);

  const Builder& b_;
  std::set<TensorId> tensors_;
  std::map<ExprId, bool> known_;
};

/// What `adjoint`, that of the node's tensor at its axes, gives to each tensor that the body reads.
std::vector<Contribution> sweep(Builder& builder, Activity& activity, const Node& node,
                                ExprId adjoint);

}  // namespace kiln::autodiff
