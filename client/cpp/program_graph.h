#pragma once

#include <memory>
#include <vector>

#include <kiln/tensor.h>

namespace kiln {
inline namespace client {
namespace detail {

/// A node of a program: one stage, or a scan with its cell, which comes before it.
struct GraphNode {
  std::vector<std::shared_ptr<const StageNode>> stages;  // the last one makes what others read
  std::vector<Tensor> inputs;                            // made by other nodes, or placeholders

  std::vector<Tensor> outputs() const;
};

/// The nodes that the tensors need, each after those it needs itself.
std::vector<GraphNode> nodes_below(const std::vector<Tensor>& tensors);

/// The placeholders that the nodes read and no scan has as its state, in the order of appearance.
std::vector<Tensor> placeholders_of(const std::vector<GraphNode>& nodes);

}  // namespace detail
}  // namespace client
}  // namespace kiln
