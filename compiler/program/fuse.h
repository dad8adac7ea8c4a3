#pragma once

#include <functional>
#include <vector>

#include "compiler/program/shapes.h"

namespace kiln::program {

/// Seconds that a kernel of several products is predicted to save by computing them in one loop
/// over rows, as an attention; 0: they would only wait for each other.
using SavedByProducts = std::function<double(const language::Kernel&)>;

/// Whether the code of a product is of a kind that what is joined to it may undo, as that on tiles.
using HasFastForm = std::function<bool(const language::Kernel&)>;

/// The nodes of a step in groups that become one kernel each, in an order in which they can run.
/// Values pass between nodes of a group without a place in the arena. Nodes that are constant share
/// no group with others.
std::vector<std::vector<NodeId>> fuse(const Program& program, const Graph& graph,
                                      const Shapes& shapes, const std::vector<bool>& constant,
                                      const SavedByProducts& saved_by_products,
                                      const HasFastForm& has_fast_form);

}  // namespace kiln::program
