#pragma once

#include <map>
#include <vector>

#include "compiler/program/graph.h"
#include "runtime/core/arguments.h"

namespace kiln::program {

struct ValueType {
  DType type = DType::Float32;
  std::vector<int64_t> shape;
  bool operator==(const ValueType&) const = default;

  int64_t bytes() const { return byte_size(type, shape); }
};

/// What is given with a run: by value, the type of an input, a parameter, or the rows of one batch.
using GivenTypes = std::map<ValueId, ValueType>;

/// The types of all values that the nodes of the graph touch, and each node's kernel for them.
struct Shapes {
  std::vector<ValueType> values;          // by value
  std::vector<language::Kernel> kernels;  // by node: without sizes
};

/// Follows the shapes of what is given through the graph. Throws InvalidArgument: what is missing,
/// and where shapes or types clash, in the names of node and values.
Shapes infer_shapes(const Program& program, const Graph& graph, const GivenTypes& given);

/// The kernel with constants in place of its sizes.
language::Kernel with_sizes(language::Kernel kernel, std::span<const int64_t> sizes);

}  // namespace kiln::program
