#pragma once

#include <set>
#include <vector>

#include "compiler/program/graph.h"

namespace kiln::program {

enum class Direction { Readers, Makers };

/// What is reached from a node: `ends`, where the way stops, and what is passed on the way there.
struct Reach {
  std::set<NodeId> passed;
  std::set<NodeId> ends;
};

/// Goes from a node to those that read it, or that it reads, until nodes for which `is_end` holds;
/// empty where it would pass more than `most`.
template <typename IsEnd>
Reach reach(const Program& program, const Graph& graph, NodeId from, Direction direction,
            size_t most, const IsEnd& is_end) {
  Reach found;
  std::vector<NodeId> open = {from};
  const auto visit = [&](NodeId node) {
    if (is_end(node)) {
      found.ends.insert(node);
    } else if (found.passed.insert(node).second) {
      open.push_back(node);
    }
  };
  while (!open.empty()) {
    const Node& node = program.nodes[open.back()];
    open.pop_back();
    if (direction == Direction::Readers) {
      for (const ValueId value : node.outputs)
        for (const NodeId reader : graph.readers[value])
          visit(reader);
    } else {
      for (const ValueId value : node.inputs)
        if (graph.maker[value] != kGiven) visit(static_cast<NodeId>(graph.maker[value]));
    }
    if (found.passed.size() > most) return {};
  }
  return found;
}

}  // namespace kiln::program
