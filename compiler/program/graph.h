#pragma once

#include <vector>

#include "compiler/program/program.h"

namespace kiln::program {

/// Who makes a value: a node, or nobody.
constexpr int32_t kGiven = -1;

/// What follows from the wiring of a program.
struct Graph {
  std::vector<int32_t> maker;  // by value: a node or kGiven
  std::vector<NodeId> order;   // the nodes that a result needs, each after those it reads from
  std::vector<std::vector<NodeId>> readers;  // by value: those nodes that read it, in their order
};

/// Checks the wiring: ids, arities, one maker of each value, no cycle, updates of parameters alone.
/// Throws InvalidArgument in the names of the program, with the line of the node at fault.
Graph graph_of(const Program& program);

}  // namespace kiln::program
