// Gradients of a step. All nodes that a loss needs become one kernel, which is differentiated; what
// that adds is split into nodes again, and reads what the step has computed anyway.
//
//   loss = mse(x, w), g = gradient(loss, w)   ->   loss = mse(x, w), d = .., g = w_grad(x, d)
//
// Here and not where a program is defined, since nodes fit together by the sizes of a call alone.
#include "compiler/program/gradients.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/autodiff/differentiate.h"
#include "compiler/program/join.h"
#include "compiler/program/split.h"

namespace kiln::program {
namespace {

using namespace language;

class Expansion {
 public:
  Expansion(Program& program, const GivenTypes& given) : program_(program), given_(given) {}

  void expand(NodeId id) {
    const Node node = program_.nodes[id];
    try {
      check_loss(node.inputs[0]);
      add_nodes(id, node);
    } catch (Error& error) {
      error.set_location(node.line);
      throw;
    }
  }

 private:
  const std::string& name(ValueId value) const { return program_.values[value].name; }

  void check_loss(ValueId loss) const {
    const ValueKind kind = program_.values[loss].kind;
    if (kind == ValueKind::Made) return;
    fail(ErrorKind::InvalidArgument, "PROGRAM_GRADIENT",
         "the gradient of {} is asked for, which is {} of {} and depends on nothing; name what a "
         "node makes",
         name(loss), name_of(kind), called(program_));
  }

  void add_nodes(NodeId id, const Node& node) {
    Program part = program_;
    part.outputs = {node.inputs[0]};
    part.reports.clear();
    part.updates.clear();
    part.until.reset();
    const Graph graph = graph_of(part);
    const Shapes shapes = infer_shapes(part, graph, given_);
    const std::vector<int64_t>& shape = shapes.values[node.inputs[0]].shape;
    if (std::ranges::any_of(shape, [](int64_t size) { return size != 1; })) {
      fail(ErrorKind::InvalidArgument, "PROGRAM_NUMBER",
           "the gradient of {} is asked for, which has shape [{}], but must have one element; sum "
           "it",
           name(node.inputs[0]), fmt::join(shape, ", "));
    }
    Joined joined =
        join(part, shapes, graph.order, [&](ValueId value) { return value == node.inputs[0]; });
    autodiff::GradientRequest request{
        .outputs = {number(joined, node.inputs[0], shape.size())}, .inputs = {}, .identity = true};
    for (auto value = node.inputs.begin() + 1; value != node.inputs.end(); ++value)
      request.inputs.push_back(tensor_of(joined, *value));
    const autodiff::Gradient gradient = autodiff::differentiate(joined.kernel, request);
    replace(id, node, joined, gradient);
  }

  /// The loss without dimensions.
  static TensorId number(Joined& joined, ValueId loss, size_t dimensions) {
    const TensorId tensor = joined.tensors.at(loss);
    if (dimensions == 0) return tensor;
    Definition& definition = joined.kernel.definition;
    const auto add = [&](Expression expression) {
      definition.expressions.push_back(std::move(expression));
      return static_cast<ExprId>(definition.expressions.size() - 1);
    };
    const ExprId zero = add({DType::Int64, IntegerConstant{0}});
    const ExprId element =
        add({definition.type_of(tensor), Read{tensor, std::vector<ExprId>(dimensions, zero)}});
    return add_stage(joined.kernel, Compute{{}, {element}}, "number");
  }

  /// What the loss does not read is a parameter all the same: its gradient is 0.
  TensorId tensor_of(Joined& joined, ValueId value) const {
    const auto known = joined.tensors.find(value);
    if (known != joined.tensors.end()) return known->second;
    const auto given = given_.find(value);
    if (given == given_.end()) {
      fail(
          ErrorKind::InvalidArgument, "PROGRAM_GRADIENT",
          "a gradient with respect to {} is asked for, which the value that is differentiated does "
          "not depend on",
          name(value));
    }
    Definition& definition = joined.kernel.definition;
    Placeholder placeholder{given->second.type, {}};
    for (const int64_t size : given->second.shape) {
      placeholder.shape.push_back(static_cast<ExprId>(definition.expressions.size()));
      definition.expressions.push_back({DType::Int64, IntegerConstant{size}});
    }
    const TensorId tensor = add_stage(joined.kernel, std::move(placeholder), name(value));
    definition.parameters.insert(definition.parameters.begin(), tensor);
    joined.tensors[value] = tensor;
    return tensor;
  }

  static TensorId add_stage(Kernel& kernel, Stage stage, const std::string& name) {
    const auto id = static_cast<StageId>(kernel.definition.stages.size());
    kernel.definition.stages.push_back(std::move(stage));
    kernel.names.stages.push_back(name);
    kernel.names.stage_lines.resize(id + 1);
    return {id, 0};
  }

  /// The first new node stands where the question stood, the others at the end.
  void replace(NodeId id, const Node& node, const Joined& joined,
               const autodiff::Gradient& gradient) {
    std::map<TensorId, ValueId> values;
    for (const auto& [value, tensor] : joined.tensors)
      values.emplace(tensor, value);
    const std::map<TensorId, ValueId> known = values;
    for (size_t i = 0; i < gradient.gradients.size(); ++i)
      values[gradient.gradients[i]] = node.outputs[i];
    std::vector<Node> nodes;
    for (Piece& piece : split(gradient.kernel, gradient.gradients,
                              [&](TensorId tensor) { return known.count(tensor) != 0; })) {
      Node& made = nodes.emplace_back();
      made.name = piece.kernel.names.kernel;
      made.line = node.line;
      made.kernel = static_cast<uint32_t>(program_.kernels.size());
      for (const TensorId tensor : piece.reads)
        made.inputs.push_back(value_of(values, gradient.kernel, tensor));
      for (const TensorId tensor : piece.makes)
        made.outputs.push_back(value_of(values, gradient.kernel, tensor));
      program_.kernels.push_back(std::move(piece.kernel));
    }
    KILN_CHECK(!nodes.empty());
    program_.nodes[id] = std::move(nodes[0]);
    program_.nodes.insert(program_.nodes.end(), std::make_move_iterator(nodes.begin() + 1),
                          std::make_move_iterator(nodes.end()));
  }

  ValueId value_of(std::map<TensorId, ValueId>& values, const Kernel& kernel, TensorId tensor) {
    const auto [found, is_new] = values.emplace(tensor, program_.values.size());
    if (is_new) {
      program_.values.push_back(
          {kernel.names.tensor_name(kernel.definition, tensor), ValueKind::Made});
    }
    return found->second;
  }

  Program& program_;
  const GivenTypes& given_;
};

}  // namespace

Program with_gradients(Program program, const GivenTypes& given) {
  if (std::ranges::none_of(program.nodes, &Node::is_gradient)) return program;
  // In an order of the graph, so that gradients of gradients find nodes.
  const std::vector<NodeId> order = graph_of(program).order;
  Expansion expansion(program, given);
  for (const NodeId node : order) {
    if (program.nodes[node].is_gradient) expansion.expand(node);
  }
  // What is left is needed by no result.
  std::erase_if(program.nodes, [](const Node& node) { return node.is_gradient; });
  return program;
}

}  // namespace kiln::program
