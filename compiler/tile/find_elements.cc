// Looks at the expression of an output, through stages that are read element by element.
#include "compiler/tile/find_elements.h"

#include <algorithm>
#include <limits>

#include "compiler/ir/gpu_arch.h"
#include "runtime/core/error.h"

namespace kiln::tile {

using namespace language;

namespace {

constexpr int kMostLookedAt = 10'000;  // expressions: an instruction for each

}  // namespace

bool Element::has(language::AxisId axis) const { return std::ranges::count(axes, axis) > 0; }

Renamed same_names(const std::vector<language::AxisId>& axes) {
  Renamed result;
  for (const language::AxisId axis : axes)
    result[axis] = axis;
  return result;
}

StageId ElementFinder::find_output() const {
  std::optional<TensorId> output;
  for (const TensorId parameter : definition_.parameters) {
    const DType type = definition_.type_of(parameter);
    if (!is_tile_type(type)) refuse_form("it reads or stores {}", type);
    if (!definition_.is_output(parameter)) continue;
    if (output) refuse_form("it has several outputs");
    output = parameter;
  }
  KILN_CHECK(output.has_value());
  return output->stage;
}

const Compute& ElementFinder::compute_of(StageId stage) const {
  const auto* compute = std::get_if<Compute>(&definition_.stages[stage]);
  if (compute == nullptr || compute->bodies.size() != 1)
    refuse_form("it is more than computed elements");
  return *compute;
}

Extent extent_of(const Definition& definition, ExprId expr) {
  const auto& node = definition.expressions[expr].node;
  if (const auto* constant = std::get_if<IntegerConstant>(&node))
    return {.constant = constant->value, .size = -1};
  if (const auto* use = std::get_if<VariableUse>(&node))
    return {.constant = 0, .size = static_cast<int32_t>(use->variable)};
  refuse_form("an extent is neither a number nor a size");
}

Element ElementFinder::element_of(const Read& read, const Renamed& renamed) const {
  Element element{read.tensor, {}, {}};
  const std::vector<ExprId> shape = definition_.shape_of(read.tensor);
  for (size_t d = 0; d < read.indices.size(); ++d) {
    const auto* use = std::get_if<AxisUse>(&definition_.expressions[read.indices[d]].node);
    const auto found = use != nullptr ? renamed.find(use->axis) : renamed.end();
    if (found == renamed.end()) refuse_form("an index of what it reads is more than an axis");
    require_from_zero(found->second);
    add_axis(element, found->second, shape[d]);
  }
  if (element.axes.empty()) refuse_form("it reads a tensor without dimensions");
  return element;
}

/// As the index of a dimension that is so long.
void ElementFinder::add_axis(Element& element, language::AxisId axis, ExprId extent) const {
  if (element.has(axis)) refuse_form("what it reads has one axis twice");
  if (extent_of(definition_.axes[axis].extent) != extent_of(extent))
    refuse_form("it reads a part of a tensor");
  element.axes.push_back(axis);
}

bool ElementFinder::is_placeholder(TensorId tensor) const {
  return std::holds_alternative<Placeholder>(definition_.stages[tensor.stage]);
}

Renamed ElementFinder::renamed_of(const Element& element) const {
  Renamed renamed;
  const Compute& compute = compute_of(element.tensor.stage);
  for (size_t d = 0; d < compute.axes.size(); ++d)
    renamed[compute.axes[d]] = element.axes[d];
  return renamed;
}

void ElementFinder::require_from_zero(language::AxisId axis) const {
  const ExprId expr = definition_.axes[axis].minimum;
  const auto* minimum = std::get_if<IntegerConstant>(&definition_.expressions[expr].node);
  if (minimum == nullptr || minimum->value != 0) refuse_form("an axis does not begin at 0");
}

/// Of a factor whose indices are an axis each.
void ElementFinder::set_plain_axes(Element& element, const FactorRead& read) const {
  const std::vector<ExprId> shape = definition_.shape_of(read.tensor);
  for (size_t d = 0; d < shape.size(); ++d)
    add_axis(element, *read.indices[d].axis(), shape[d]);
  if (element.axes.empty()) refuse_form("it reads a tensor without dimensions");
}

/// The axes of what an expression is made of.
void ElementFinder::collect_axes(ExprId expr, const Renamed& renamed, Element& factor) const {
  const auto& node = definition_.expressions[expr].node;
  if (const auto* read = std::get_if<Read>(&node)) {
    Element element = element_of(*read, renamed);
    if (element.axes.size() > factor.axes.size()) std::swap(element.axes, factor.axes);
    for (const language::AxisId axis : element.axes)
      if (!factor.has(axis)) factor.axes.push_back(axis);
    if (!is_placeholder(read->tensor))
      collect_axes(compute_of(read->tensor.stage).bodies[0], renamed_of(element_of(*read, renamed)),
                   factor);
  } else if (const auto* use = std::get_if<AxisUse>(&node)) {
    if (!factor.has(renamed.at(use->axis))) factor.axes.push_back(renamed.at(use->axis));
  } else if (const auto* cast = std::get_if<CastTo>(&node)) {
    collect_axes(cast->operand, renamed, factor);
  } else if (const auto* operation = std::get_if<Operation>(&node)) {
    for (const ExprId operand : operation->operands)
      collect_axes(operand, renamed, factor);
  }
}

/// What stands in a sum as float32(..) and is made of elements in 16 bits: on its way to tensor
/// cores it is computed in registers.
Element ElementFinder::computed_factor(ExprId expr, const Renamed& renamed) {
  const auto* cast = std::get_if<CastTo>(&definition_.expressions[expr].node);
  const bool is_short = cast != nullptr && definition_.expressions[expr].type == DType::Float32 &&
                        ir::is_short_float(definition_.expressions[cast->operand].type);
  if (!is_short) refuse_form("{}", kNoProduct);
  look_at(cast->operand, renamed);
  Element factor{{}, {}, {}, false, ComputedFactor{cast->operand, renamed}};
  collect_axes(cast->operand, renamed, factor);
  if (factor.axes.empty()) refuse_form("{}", kNoProduct);
  return factor;
}

DType ElementFinder::type_of(const Element& factor) const {
  return factor.computed ? definition_.expressions[factor.computed->expr].type
                         : definition_.type_of(factor.tensor);
}

/// A factor as it stands in a sum: an element in the type of the sum, or what is made of some.
Element ElementFinder::factor_of(ExprId expr, const Renamed& renamed) {
  Substituted axes;
  for (const auto& [own, axis] : renamed)
    axes[own] = AffineIndex{{{axis, 1}}, 0};
  std::optional<FactorRead> read = find_factor(definition_, expr, axes);
  const DType type = read ? definition_.type_of(read->tensor) : DType::Bool;
  if (!(is_factor_float(type) || is_factor_int(type) || type == DType::Float32) ||
      definition_.expressions[expr].type != sum_type_of(type))
    return computed_factor(expr, renamed);
  for (const AffineIndex& index : read->indices) {
    for (const auto& [axis, factor] : index.factors)
      require_from_zero(axis);
  }
  const auto is_axis = [](const AffineIndex& index) { return index.axis().has_value(); };
  // A part of a tensor by places, as of a triangle, is no window of it.
  const bool is_part = !read->inside.empty() && std::ranges::all_of(read->indices, is_axis);
  if (is_part && ir::is_short_float(type)) return computed_factor(expr, renamed);
  Element element{read->tensor, {}, {}, type == DType::Float32 && read->in_tf32};
  if (read->inside.empty() && std::ranges::all_of(read->indices, is_axis)) {
    set_plain_axes(element, *read);
    return element;
  }
  for (const AffineIndex& index : read->indices) {
    for (const auto& [axis, factor] : index.factors)
      if (!element.has(axis)) element.axes.push_back(axis);
  }
  element.window = std::move(read);
  return element;
}

std::optional<Scalar> ElementFinder::number_of(ExprId expr) const {
  const Expression& expression = definition_.expressions[expr];
  if (const auto* number = std::get_if<IntegerConstant>(&expression.node))
    return Scalar::of_int(expression.type, number->value);
  if (const auto* number = std::get_if<FloatConstant>(&expression.node))
    return Scalar::of_float(expression.type, number->value);
  if (const auto* cast = std::get_if<CastTo>(&expression.node)) {
    const std::optional<Scalar> operand = number_of(cast->operand);
    return operand ? std::optional(convert(expression.type, *operand)) : std::nullopt;
  }
  const auto* operation = std::get_if<Operation>(&expression.node);
  if (operation == nullptr) return std::nullopt;
  std::vector<Scalar> operands;
  for (const ExprId each : operation->operands) {
    const std::optional<Scalar> operand = number_of(each);
    if (!operand) return std::nullopt;
    operands.push_back(*operand);
  }
  return apply_operator(operation->op, operands);
}

void ElementFinder::look_at(ExprId expr, const Renamed& renamed) {
  if (++looked_at_ > kMostLookedAt) {
    refuse_form("an element is made of more than {} expressions, through all of its stages",
                kMostLookedAt);
  }
  const Expression& expression = definition_.expressions[expr];
  if (expression.type == DType::Int64) {
    constexpr double kMost = std::numeric_limits<int32_t>::max();
    if (look_at_place(expr, renamed) > kMost) refuse_form("it computes in int64");
    return;
  }
  if (expression.type != DType::Bool && !is_computed(expression.type))
    refuse_form("it computes in {}", expression.type);
  if (const auto* reduction = std::get_if<Reduction>(&expression.node)) {
    look_at_reduction(*reduction, expression.type, renamed);
  } else if (const auto* read = std::get_if<Read>(&expression.node)) {
    const Element element = element_of(*read, renamed);
    // What is read again at the same place is the same.
    const bool is_new = stages_.emplace(read->tensor, element.axes).second;
    if (is_new && !is_placeholder(read->tensor))
      look_at(compute_of(read->tensor.stage).bodies[0], renamed_of(element));
  } else if (const auto* cast = std::get_if<CastTo>(&expression.node)) {
    look_at_cast(*cast, expression.type, renamed);
  } else if (const auto* operation = std::get_if<Operation>(&expression.node)) {
    const ExprId last = operation->operands.back();
    const Operator function = tile_function(operation->op);
    DType type = definition_.expressions[last].type;
    if (type == DType::Int64) type = DType::Int32;
    if (!is_known(function, type) && !(is_composed(function) && type == DType::Float32)) {
      if (number_of(expr)) return;
      refuse_form("{} is not done on tiles", row_of(operation->op).spelling);
    }
    for (const ExprId operand : operation->operands)
      look_at(operand, renamed);
  } else if (expression.type == DType::Bool) {
    refuse_form("a condition is a constant");
  }
}

/// What is read to be cast need not be computed with.
void ElementFinder::look_at_cast(const CastTo& cast, DType type, const Renamed& renamed) {
  const Expression& operand = definition_.expressions[cast.operand];
  if (is_float(operand.type) && !is_float(type)) refuse_form("it makes integers of floats");
  if (operand.type == DType::Bool || type == DType::Bool)
    refuse_form("it makes a number of a condition, or one of a number");
  const auto* read = std::get_if<Read>(&operand.node);
  if (read == nullptr || !is_placeholder(read->tensor)) return look_at(cast.operand, renamed);
  if (!is_tile_type(operand.type)) refuse_form("it computes in {}", operand.type);
  element_of(*read, renamed);
}

/// What is made of places, in int64, tiles have in int32. Returns the most that it can be.
double ElementFinder::look_at_place(ExprId expr, const Renamed& renamed) {
  constexpr double kOpenPlaces = kMostSize;
  const auto& node = definition_.expressions[expr].node;
  if (const auto* constant = std::get_if<IntegerConstant>(&node))
    return std::abs(static_cast<double>(constant->value));
  if (std::holds_alternative<VariableUse>(node)) return kOpenPlaces;
  if (const auto* use = std::get_if<AxisUse>(&node)) {
    require_from_zero(renamed.at(use->axis));
    const Extent extent = extent_of(definition_.axes[renamed.at(use->axis)].extent);
    return extent.size < 0 ? static_cast<double>(extent.constant) : kOpenPlaces;
  }
  if (const auto* cast = std::get_if<CastTo>(&node)) {
    look_at(cast->operand, renamed);
    return std::numeric_limits<int32_t>::max();
  }
  const auto* operation = std::get_if<Operation>(&node);
  if (operation == nullptr) refuse_form("it computes in int64");
  double most = operation->op == Operator::Mul ? 1 : 0;
  for (const ExprId operand : operation->operands) {
    const double part = look_at_place(operand, renamed);
    most = operation->op == Operator::Mul ? most * part : most + part;
  }
  const bool is_done = operation->op == Operator::Add || operation->op == Operator::Sub ||
                       operation->op == Operator::Mul || operation->op == Operator::Negative;
  if (!is_done) refuse_form("{} of int64 is not done on tiles", row_of(operation->op).spelling);
  return most;
}

}  // namespace kiln::tile
