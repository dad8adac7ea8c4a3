#pragma once

#include <vector>

#include "compiler/program/shapes.h"

namespace kiln::program {

/// The nodes of a step in groups that become one kernel each, in an order in which they can run.
/// Values pass between nodes of a group without a place in the arena.
std::vector<std::vector<NodeId>> fuse(const Program& program, const Graph& graph,
                                      const Shapes& shapes);

}  // namespace kiln::program
