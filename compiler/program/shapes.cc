// Shapes by abstract execution: each node's kernel is bound to the shapes of its inputs exactly as
// a call of it would be, and what its outputs would be allocated with goes on to its readers.
//
//   dense(x: [m, k], w: [k, n]) -> [m, n],  x: [1000, 784], w: [784, 256]   ->   [1000, 256]
//
// Kernels lose their sizes on the way: the plan is for these shapes, so code may be, too.
#include "compiler/program/shapes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln::program {
namespace {

using language::Definition;
using language::ExprId;

/// An expression over sizes as the runtime reads it.
SizeExpr size_expr(const Definition& definition, ExprId id) {
  const language::Expression& expression = definition.expressions[id];
  if (const auto* constant = std::get_if<language::IntegerConstant>(&expression.node))
    return SizeExpr::constant(constant->value);
  if (const auto* use = std::get_if<language::VariableUse>(&expression.node))
    return SizeExpr::scalar(use->variable);
  if (const auto* cast = std::get_if<language::CastTo>(&expression.node))
    return size_expr(definition, cast->operand);
  const auto* operation = std::get_if<language::Operation>(&expression.node);
  KILN_CHECK(operation != nullptr);
  const auto operand = [&](size_t i) { return size_expr(definition, operation->operands[i]); };
  using language::Operator;
  switch (operation->op) {
    case Operator::Add: return SizeExpr::binary(SizeExpr::Op::Add, operand(0), operand(1));
    case Operator::Sub: return SizeExpr::binary(SizeExpr::Op::Sub, operand(0), operand(1));
    case Operator::Mul: return SizeExpr::binary(SizeExpr::Op::Mul, operand(0), operand(1));
    case Operator::FloorDiv:
      return SizeExpr::binary(SizeExpr::Op::FloorDiv, operand(0), operand(1));
    case Operator::FloorMod:
      return SizeExpr::binary(SizeExpr::Op::FloorMod, operand(0), operand(1));
    case Operator::Min: return SizeExpr::binary(SizeExpr::Op::Min, operand(0), operand(1));
    case Operator::Max: return SizeExpr::binary(SizeExpr::Op::Max, operand(0), operand(1));
    case Operator::Negative:
      return SizeExpr::binary(SizeExpr::Op::Sub, SizeExpr::constant(0), operand(0));
    default:
      fail(ErrorKind::Unsupported, "PROGRAM_SHAPE",
           "a shape with {} cannot be followed through a program; give that kernel constant sizes",
           row_of(operation->op).spelling);
  }
}

/// What a kernel asks of its arguments, without code.
Artifact signature_of(const Definition& definition) {
  Artifact signature;
  signature.size_count = static_cast<int32_t>(definition.variables.size());
  for (const language::TensorId tensor : definition.parameters) {
    Parameter& parameter = signature.parameters.emplace_back();
    parameter.type = definition.type_of(tensor);
    parameter.is_output = definition.is_output(tensor);
    for (const ExprId extent : definition.shape_of(tensor))
      parameter.shape.push_back(size_expr(definition, extent));
  }
  signature.variants.emplace_back();
  return signature;
}

class Inference {
 public:
  Inference(const Program& program, const Graph& graph) : program_(program), graph_(graph) {
    shapes_.values.resize(program.values.size());
    shapes_.kernels.resize(program.nodes.size());
    known_.assign(program.values.size(), false);
  }

  Shapes run(const GivenTypes& given) {
    for (const auto& [value, type] : given) {
      shapes_.values[value] = type;
      known_[value] = true;
    }
    for (ValueId value = 0; value < program_.values.size(); ++value) {
      if (program_.values[value].kind != ValueKind::Step) continue;
      shapes_.values[value] = {DType::Int64, {}};
      known_[value] = true;
    }
    for (const NodeId node : graph_.order)
      bind(node);
    check_updates();
    check_numbers();
    return std::move(shapes_);
  }

 private:
  void bind(NodeId id) {
    const Node& node = program_.nodes[id];
    const language::Kernel& kernel = program_.kernels[node.kernel];
    const Definition& definition = kernel.definition;
    std::vector<ArgumentSlot> slots;
    KernelNames names{.kernel = node.name, .sizes = kernel.names.variables};
    size_t inputs = 0;
    size_t outputs = 0;
    std::vector<ValueId> values;
    for (const language::TensorId tensor : definition.parameters) {
      const bool is_output = definition.is_output(tensor);
      const ValueId value = is_output ? node.outputs[outputs++] : node.inputs[inputs++];
      values.push_back(value);
      names.parameters.push_back(program_.values[value].name);
      if (!is_output) require(node, value);
      const ValueType& type = shapes_.values[value];
      slots.push_back({!is_output, {type.type, type.shape, {}}});
    }
    try {
      const BoundCall call = bind_arguments(signature_of(definition), names, slots, {});
      const std::span<const int64_t> sizes(call.scalars.data(), definition.variables.size());
      for (size_t i = 0; i < values.size(); ++i) {
        shapes_.values[values[i]] = {definition.type_of(definition.parameters[i]), call.shapes[i]};
        known_[values[i]] = true;
      }
      shapes_.kernels[id] = with_sizes(kernel, sizes);
    } catch (Error& error) {
      error.add_note(fmt::format("in program {}", called(program_)));
      error.set_location(node.line);
      throw;
    }
  }

  void require(const Node& node, ValueId value) const {
    if (known_[value]) return;
    const Value& missing = program_.values[value];
    fail(ErrorKind::InvalidArgument, "PROGRAM_GIVEN",
         "{} needs {} {}, which {} reads, but got none", called(program_),
         missing.kind == ValueKind::Parameter ? "parameter"
         : missing.kind == ValueKind::Batch   ? "data set"
                                              : "input",
         missing.name, node.name);
  }

  void check_updates() const {
    for (const auto& [parameter, value] : program_.updates) {
      if (!known_[parameter]) {
        fail(ErrorKind::InvalidArgument, "PROGRAM_GIVEN", "{} updates parameter {}, but got none",
             called(program_), program_.values[parameter].name);
      }
      const ValueType& from = shapes_.values[value];
      const ValueType& to = shapes_.values[parameter];
      if (from == to) continue;
      fail(ErrorKind::InvalidArgument, "PROGRAM_UPDATE",
           "parameter {} is {}[{}], but becomes {}, which is {}[{}]",
           program_.values[parameter].name, to.type, fmt::join(to.shape, ", "),
           program_.values[value].name, from.type, fmt::join(from.shape, ", "));
    }
  }

  void check_numbers() const {
    const auto check = [&](std::string_view what, ValueId value) {
      const ValueType& type = shapes_.values[value];
      if (type.bytes() == size_of(type.type)) return;
      fail(ErrorKind::InvalidArgument, "PROGRAM_NUMBER",
           "{} {} of {} has shape ({}), but must be one number", what, program_.values[value].name,
           called(program_), fmt::join(type.shape, ", "));
    };
    for (const ValueId value : program_.reports)
      check("report", value);
    if (program_.until) check("stop condition", *program_.until);
  }

  const Program& program_;
  const Graph& graph_;
  Shapes shapes_;
  std::vector<bool> known_;
};

}  // namespace

language::Kernel with_sizes(language::Kernel kernel, std::span<const int64_t> sizes) {
  for (language::Expression& expression : kernel.definition.expressions) {
    if (const auto* use = std::get_if<language::VariableUse>(&expression.node))
      expression.node = language::IntegerConstant{sizes[use->variable]};
  }
  kernel.definition.variables.clear();
  kernel.names.variables.clear();
  return kernel;
}

Shapes infer_shapes(const Program& program, const Graph& graph, const GivenTypes& given) {
  return Inference(program, graph).run(given);
}

}  // namespace kiln::program
