#pragma once

#include <functional>
#include <map>
#include <span>
#include <vector>

#include "compiler/program/shapes.h"

namespace kiln::program {

/// Nodes as one kernel: what passes between them is a stage of it, and no argument.
struct Joined {
  language::Kernel kernel;
  std::vector<ValueId> inputs;                    // in the order of the kernel's parameters
  std::vector<ValueId> outputs;                   // these follow the inputs
  std::map<ValueId, language::TensorId> tensors;  // all values that the nodes touch
};

/// `nodes` stand in an order of the graph; `is_needed` says which values others read, too.
Joined join(const Program& program, const Shapes& shapes, std::span<const NodeId> nodes,
            const std::function<bool(ValueId)>& is_needed);

}  // namespace kiln::program
