#pragma once

#include <vector>

#include "compiler/program/shapes.h"

namespace kiln::program {

/// By value, whether it is a parameter that no update changes.
std::vector<bool> lasting_values(const Program& program);

/// By node, whether it is computed once for all steps, and for all runs until somebody writes what
/// it reads: that follows from parameters alone which no update changes. What is larger than what
/// it is made of is not kept, nor what a step is for.
std::vector<bool> constant_nodes(const Program& program, const Graph& graph, const Shapes& shapes);

}  // namespace kiln::program
