// What programs of all kinds are written with: axes, loops, tiles of parameters, and what is
// computed element by element.
#include "compiler/tile/program_writer.h"

#include <algorithm>

#include "compiler/language/text/text_names.h"
#include "compiler/tile/composed.h"
#include "compiler/tile/verify.h"

namespace kiln::tile {

using namespace language;

std::vector<Parameter> parameters_of(const Kernel& kernel) {
  const Definition& definition = kernel.definition;
  const SourceMap names = printable_names(kernel);
  std::vector<Parameter> parameters;
  for (const TensorId tensor : definition.parameters) {
    Parameter& parameter = parameters.emplace_back(Parameter{names.tensor_name(definition, tensor),
                                                             definition.type_of(tensor),
                                                             {},
                                                             definition.is_output(tensor)});
    for (const ExprId extent : definition.shape_of(tensor))
      parameter.shape.push_back(extent_of(definition, extent));
  }
  return parameters;
}

ProgramWriter::ProgramWriter(const Kernel& kernel, const ElementFinder& finder)
    : definition_(kernel.definition), finder_(finder), names_(printable_names(kernel)) {
  program_.name = names_.kernel;
  program_.sizes = names_.variables;
  program_.parameters = parameters_of(kernel);
}

void ProgramWriter::add_axis(language::AxisId axis, int64_t step) {
  numbers_[axis] = static_cast<AxisId>(program_.axes.size());
  std::string name = names_.axes[axis];
  // Two stages may each have an axis of this name.
  while (std::ranges::count(program_.axes, name, &Axis::name) > 0)
    name += "_";
  program_.axes.push_back(
      {std::move(name), finder_.extent_of(definition_.axes[axis].extent), step});
}

uint32_t ProgramWriter::parameter_of(TensorId tensor) const {
  const auto parameter = std::ranges::find(definition_.parameters, tensor);
  KILN_CHECK(parameter != definition_.parameters.end());
  return static_cast<uint32_t>(parameter - definition_.parameters.begin());
}

ValueId ProgramWriter::add(Instruction instruction, TileType type) {
  const auto id = static_cast<ValueId>(program_.values.size());
  program_.values.push_back(std::move(type));
  instruction.results = {id};
  body_->push_back(std::move(instruction));
  return id;
}

ValueId ProgramWriter::constant(double number, TileType type) {
  return add({.what = Constant{number}, .operands = {}, .results = {}}, std::move(type));
}

ValueId ProgramWriter::apply(Operator function, std::vector<ValueId> operands, DType type) {
  const std::vector<int64_t> shape = type_of(operands.back()).shape;
  return add({.what = Apply{function}, .operands = std::move(operands), .results = {}},
             {type, shape});
}

ValueId ProgramWriter::cast(DType type, ValueId operand) {
  if (type_of(operand).element == type) return operand;
  return add({.what = Cast{}, .operands = {operand}, .results = {}},
             {type, type_of(operand).shape});
}

ValueId ProgramWriter::reduce(Combiner combiner, uint32_t dimension, ValueId operand) {
  TileType type = type_of(operand);
  type.shape[dimension] = 1;
  return add({.what = Reduce{combiner, dimension}, .operands = {operand}, .results = {}}, type);
}

ValueId ProgramWriter::broadcast(ValueId operand, const std::vector<int64_t>& shape) {
  if (type_of(operand).shape == shape) return operand;
  return add({.what = Broadcast{}, .operands = {operand}, .results = {}},
             {type_of(operand).element, shape});
}

ValueId ProgramWriter::reshape(ValueId operand, const std::vector<int64_t>& shape) {
  if (type_of(operand).shape == shape) return operand;
  return add({.what = Reshape{}, .operands = {operand}, .results = {}},
             {type_of(operand).element, shape});
}

ValueId ProgramWriter::places(language::AxisId axis, std::vector<int64_t> shape) {
  return add({.what = Places{numbers_.at(axis)}, .operands = {}, .results = {}},
             {DType::Int32, std::move(shape)});
}

ValueId ProgramWriter::extent(const Extent& extent, const std::vector<int64_t>& shape) {
  if (extent.size < 0) return constant(static_cast<double>(extent.constant), {DType::Int32, shape});
  const std::vector<int64_t> ones(shape.size(), 1);
  const SizeOf size{static_cast<uint32_t>(extent.size)};
  return broadcast(add({.what = size, .operands = {}, .results = {}}, {DType::Int32, ones}), shape);
}

std::vector<ValueId> ProgramWriter::loop(For loop, const std::vector<ValueId>& first,
                                         const Body& body) {
  const auto add_all = [&](std::vector<ValueId>& values) {
    for (const ValueId value : first) {
      values.push_back(static_cast<ValueId>(program_.values.size()));
      program_.values.push_back(TileType(type_of(value)));
    }
  };
  Instruction instruction{.what = For{}, .operands = first, .results = {}};
  add_all(instruction.results);
  add_all(loop.carried);
  std::vector<Instruction>* const around = std::exchange(body_, &loop.body);
  auto known_around = std::exchange(known_, {});
  loop.yields = body(loop.carried);
  body_ = around;
  known_ = std::move(known_around);
  const std::vector<ValueId> results = instruction.results;
  instruction.what = std::move(loop);
  body_->push_back(std::move(instruction));
  return results;
}

std::pair<ViewId, std::vector<AxisId>> ProgramWriter::view_of(
    const Element& element, const std::vector<language::AxisId>& last) {
  std::vector<language::AxisId> axes;
  for (const language::AxisId axis : element.axes)
    if (std::ranges::count(last, axis) == 0) axes.push_back(axis);
  axes.insert(axes.end(), last.begin(), last.end());
  View view;
  std::vector<AxisId> at;
  view.parameter = parameter_of(element.tensor);
  for (const language::AxisId axis : axes) {
    view.tile.push_back(step_of(axis));
    view.order.push_back(
        static_cast<uint32_t>(std::ranges::find(element.axes, axis) - element.axes.begin()));
    at.push_back(numbers_.at(axis));
  }
  const auto known = std::ranges::find(program_.views, view);
  if (known != program_.views.end())
    return {static_cast<ViewId>(known - program_.views.begin()), std::move(at)};
  program_.views.push_back(std::move(view));
  return {static_cast<ViewId>(program_.views.size() - 1), std::move(at)};
}

ValueId ProgramWriter::load(const Element& element, const std::vector<language::AxisId>& last,
                            const std::vector<int64_t>& extents) {
  const auto [view, at] = view_of(element, last);
  const TileType type{definition_.type_of(element.tensor), program_.views[view].tile};
  return reshape(add({.what = Load{view, at}, .operands = {}, .results = {}}, type), extents);
}

/// Those of which it has several places.
std::vector<language::AxisId> ProgramWriter::tiled_axes(const Sheet& sheet) const {
  std::vector<language::AxisId> axes = sheet.rows;
  if (sheet.column) axes.push_back(*sheet.column);
  return axes;
}

std::vector<int64_t> ProgramWriter::shape_of(const Sheet& sheet) const {
  std::vector<int64_t> shape = {1, sheet.column ? step_of(*sheet.column) : 1};
  for (const language::AxisId axis : sheet.rows)
    shape[0] *= step_of(axis);
  return shape;
}

/// A tile that has the dimensions of some of the axes, as one of all of them.
ValueId ProgramWriter::spread(const Sheet& sheet, const Element& element, const Tile& tile) {
  std::vector<language::AxisId> some;
  std::vector<int64_t> extents;
  std::vector<int64_t> whole;
  for (const language::AxisId axis : tiled_axes(sheet)) {
    whole.push_back(step_of(axis));
    extents.push_back(element.has(axis) ? step_of(axis) : 1);
    if (element.has(axis)) some.push_back(axis);
  }
  const std::vector<int64_t> shape = shape_of(sheet);
  const auto has = [&](language::AxisId axis) { return element.has(axis); };
  if (std::ranges::none_of(sheet.rows, has)) {
    extents = {1, sheet.column ? extents.back() : 1};
    whole = shape;
  }
  return reshape(broadcast(tile(some, extents), whole), shape);
}

/// What is made of places, of 1 row or 1 column where it is the same for all: broadcast last, since
/// tileiras keeps what is the same for all iterations of a loop in registers.
ValueId ProgramWriter::place_of(const Sheet& sheet, ExprId expr, const Renamed& renamed) {
  const Expression& expression = definition_.expressions[expr];
  const TileType one{DType::Int32, {1, 1}};
  if (const auto* number = std::get_if<IntegerConstant>(&expression.node))
    return constant(static_cast<double>(number->value), one);
  if (const auto* use = std::get_if<VariableUse>(&expression.node))
    return extent({.size = static_cast<int32_t>(use->variable)}, one.shape);
  if (const auto* use = std::get_if<AxisUse>(&expression.node)) {
    const language::AxisId axis = renamed.at(use->axis);
    const auto tile = [&](const std::vector<language::AxisId>&,
                          const std::vector<int64_t>& extents) { return places(axis, extents); };
    if (axis == sheet.column) return places(axis, {1, step_of(axis)});
    if (std::ranges::count(sheet.rows, axis) == 0) return places(axis, one.shape);
    return spread({sheet.rows, std::nullopt, {}}, {{}, {axis}, {}}, tile);
  }
  if (const auto* conversion = std::get_if<CastTo>(&expression.node))
    return cast(DType::Int32, value_of(sheet, conversion->operand, renamed));
  const auto* operation = std::get_if<Operation>(&expression.node);
  KILN_CHECK(operation != nullptr);  // no other expression is an int64
  std::vector<ValueId> operands;
  std::vector<int64_t> shape = one.shape;
  for (const ExprId operand : operation->operands) {
    operands.push_back(place_of(sheet, operand, renamed));
    for (const size_t d : {0, 1})
      shape[d] = std::max(shape[d], type_of(operands.back()).shape[d]);
  }
  for (ValueId& operand : operands)
    operand = broadcast(operand, shape);
  return apply(operation->op, std::move(operands), DType::Int32);
}

ValueId ProgramWriter::value_of(const Sheet& sheet, ExprId expr, const Renamed& renamed) {
  const Expression& expression = definition_.expressions[expr];
  const std::vector<int64_t> shape = shape_of(sheet);
  // Finders let nothing through of int64 but what fits an int32.
  if (expression.type == DType::Int64) return broadcast(place_of(sheet, expr, renamed), shape);
  const TileType type{expression.type, shape};
  if (std::holds_alternative<Reduction>(expression.node)) return sheet.reduction();
  if (const auto* number = std::get_if<FloatConstant>(&expression.node))
    return constant(number->value, type);
  if (const auto* number = std::get_if<IntegerConstant>(&expression.node))
    return constant(static_cast<double>(number->value), type);
  if (const auto* read = std::get_if<Read>(&expression.node)) {
    const Element element = finder_.element_of(*read, renamed);
    const auto loaded = [&](const std::vector<language::AxisId>& last,
                            const std::vector<int64_t>& extents) {
      return load(element, last, extents);
    };
    if (finder_.is_placeholder(read->tensor)) return spread(sheet, element, loaded);
    const std::tuple key(read->tensor, element.axes, tiled_axes(sheet));
    const auto known = known_.find(key);
    if (known != known_.end()) return known->second;
    const ValueId value = value_of(sheet, finder_.compute_of(read->tensor.stage).bodies[0],
                                   finder_.renamed_of(element));
    known_[key] = value;
    return value;
  }
  if (const auto* conversion = std::get_if<CastTo>(&expression.node))
    return cast(expression.type, value_of(sheet, conversion->operand, renamed));
  const auto* operation = std::get_if<Operation>(&expression.node);
  KILN_CHECK(operation != nullptr);  // no other expression is computed with
  const std::optional<Scalar> number = finder_.number_of(expr);
  if (number && is_float(type.element)) return constant(number->floating, type);
  std::vector<ValueId> operands;
  for (const ExprId operand : operation->operands)
    operands.push_back(value_of(sheet, operand, renamed));
  if (is_composed(operation->op)) return compose(*this, operation->op, operands[0]);
  return apply(tile_function(operation->op), std::move(operands), type.element);
}

void ProgramWriter::store(const Sheet& sheet, StageId output,
                          const std::vector<language::AxisId>& axes, ValueId result) {
  const auto [view, at] = view_of({{output, 0}, axes, {}}, tiled_axes(sheet));
  result = reshape(result, program_.views[view].tile);
  body_->push_back({.what = Store{view, at}, .operands = {result}, .results = {}});
}

Program ProgramWriter::finish() {
  verify(program_);
  return std::move(program_);
}

}  // namespace kiln::tile
