#pragma once

#include <vector>

#include "compiler/autodiff/sweep.h"

namespace kiln::autodiff {

/// Makes each reduction inside of the node's expressions a tensor of its own, over the axes that it
/// uses, and returns those as nodes, readers before what they read. A reduction that is the whole
/// body stays.
///
///   Y[i] = X[i] / sum[k](X[k])    ->    Y[i] = X[i] / Y_sum[]     Y_sum[] = sum[k](X[k])
std::vector<Node> lift_reductions(Builder& builder, Node& node);

}  // namespace kiln::autodiff
