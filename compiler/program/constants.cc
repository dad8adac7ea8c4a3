// Which nodes depend on what no step changes: loop-invariant, and the steps are the loop. A model
// that predicts has many of them: filters in another layout, scales of folded normalizations.
//
//   w a parameter without update:  t = transpose(w)  y = matmul(x, t)   ->   t once, y in each step
#include "compiler/program/constants.h"

#include <algorithm>
#include <set>

namespace kiln::program {
namespace {

int64_t bytes_of(const Shapes& shapes, const std::vector<ValueId>& values) {
  int64_t bytes = 0;
  for (const ValueId value : values)
    bytes += shapes.values[value].bytes();
  return bytes;
}

}  // namespace

std::vector<bool> lasting_values(const Program& program) {
  std::vector<bool> lasting;
  for (const Value& value : program.values)
    lasting.push_back(value.kind == ValueKind::Parameter);
  for (const Update& update : program.updates)
    lasting[update.parameter] = false;
  return lasting;
}

std::vector<bool> constant_nodes(const Program& program, const Graph& graph, const Shapes& shapes) {
  std::vector<bool> lasting = lasting_values(program);
  const std::vector<ValueId> list = results_of(program);
  const std::set<ValueId> results(list.begin(), list.end());
  std::vector<bool> constant(program.nodes.size(), false);
  for (const NodeId id : graph.order) {
    const Node& node = program.nodes[id];
    const auto is_result = [&](ValueId value) { return results.contains(value); };
    constant[id] =
        !node.inputs.empty() &&
        std::ranges::all_of(node.inputs, [&](ValueId value) { return lasting[value]; }) &&
        std::ranges::none_of(node.outputs, is_result) &&
        bytes_of(shapes, node.outputs) <= bytes_of(shapes, node.inputs);
    for (const ValueId value : node.outputs)
      lasting[value] = constant[id];
  }
  return constant;
}

}  // namespace kiln::program
