// Looks at the expression of the output, through stages that are read element by element, for one
// sum of products of two elements.
//
//   C[b, i, j] = sum[k](A[b, i, k] * B[b, k, j]):  batch b, row i, column j
#include "compiler/tile/find_product.h"

#include <algorithm>
#include <optional>

#include "runtime/core/error.h"

namespace kiln::tile {

using namespace language;

namespace {

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorKind::Unsupported, "TILE_FORM", format, std::forward<Args>(args)...);
}

constexpr std::string_view kNoProduct =
    "it is no sum of products of 16-bit or 8-bit floats or of tf32() in float32, or of 8-bit "
    "integers in int32";

void require_computed(DType type) {
  if (!is_computed(type)) refuse("it computes in {}", type);
}

}  // namespace

bool Element::has(language::AxisId axis) const { return std::ranges::count(axes, axis) > 0; }

Renamed Product::same() const {
  Renamed result;
  for (const language::AxisId axis : axes)
    result[axis] = axis;
  return result;
}

Product ProductFinder::find() {
  std::optional<TensorId> output;
  for (const TensorId parameter : definition_.parameters) {
    const DType type = definition_.type_of(parameter);
    if (!is_tile_type(type)) refuse("it reads or stores {}", type);
    if (!definition_.is_output(parameter)) continue;
    if (output) refuse("it has several outputs");
    output = parameter;
  }
  KILN_CHECK(output.has_value());
  product_.output = output->stage;
  product_.axes = compute_of(output->stage).axes;
  look_at(compute_of(output->stage).bodies[0], product_.same());
  if (!has_sum_) refuse("{}", kNoProduct);
  set_sides();
  return std::move(product_);
}

const Compute& ProductFinder::compute_of(StageId stage) const {
  const auto* compute = std::get_if<Compute>(&definition_.stages[stage]);
  if (compute == nullptr || compute->bodies.size() != 1)
    refuse("it is more than computed elements");
  return *compute;
}

Extent ProductFinder::extent_of(ExprId expr) const {
  const auto& node = definition_.expressions[expr].node;
  if (const auto* constant = std::get_if<IntegerConstant>(&node))
    return {.constant = constant->value, .size = -1};
  if (const auto* use = std::get_if<VariableUse>(&node))
    return {.constant = 0, .size = static_cast<int32_t>(use->variable)};
  refuse("an extent is neither a number nor a size");
}

Element ProductFinder::element_of(const Read& read, const Renamed& renamed) const {
  Element element{read.tensor, {}, {}};
  const std::vector<ExprId> shape = definition_.shape_of(read.tensor);
  for (size_t d = 0; d < read.indices.size(); ++d) {
    const auto* use = std::get_if<AxisUse>(&definition_.expressions[read.indices[d]].node);
    const auto found = use != nullptr ? renamed.find(use->axis) : renamed.end();
    if (found == renamed.end()) refuse("an index of what it reads is more than an axis");
    require_from_zero(found->second);
    add_axis(element, found->second, shape[d]);
  }
  if (element.axes.empty()) refuse("it reads a tensor without dimensions");
  return element;
}

/// As the index of a dimension that is so long.
void ProductFinder::add_axis(Element& element, language::AxisId axis, ExprId extent) const {
  if (element.has(axis)) refuse("what it reads has one axis twice");
  if (extent_of(definition_.axes[axis].extent) != extent_of(extent))
    refuse("it reads a part of a tensor");
  element.axes.push_back(axis);
}

bool ProductFinder::is_placeholder(TensorId tensor) const {
  return std::holds_alternative<Placeholder>(definition_.stages[tensor.stage]);
}

Renamed ProductFinder::renamed_of(const Element& element) const {
  Renamed renamed;
  const Compute& compute = compute_of(element.tensor.stage);
  for (size_t d = 0; d < compute.axes.size(); ++d)
    renamed[compute.axes[d]] = element.axes[d];
  return renamed;
}

void ProductFinder::require_from_zero(language::AxisId axis) const {
  const ExprId expr = definition_.axes[axis].minimum;
  const auto* minimum = std::get_if<IntegerConstant>(&definition_.expressions[expr].node);
  if (minimum == nullptr || minimum->value != 0) refuse("an axis does not begin at 0");
}

/// A factor whose indices are an axis each.
Element ProductFinder::plain_factor(const FactorRead& read) const {
  Element element{read.tensor, {}, {}};
  const std::vector<ExprId> shape = definition_.shape_of(read.tensor);
  for (size_t d = 0; d < shape.size(); ++d)
    add_axis(element, *read.indices[d].axis(), shape[d]);
  if (element.axes.empty()) refuse("it reads a tensor without dimensions");
  return element;
}

/// A factor as it stands in a sum: a short element in the type of the sum.
Element ProductFinder::factor_of(ExprId expr, const Renamed& renamed) const {
  Substituted axes;
  for (const auto& [own, axis] : renamed)
    axes[own] = AffineIndex{{{axis, 1}}, 0};
  std::optional<FactorRead> read = find_factor(definition_, expr, axes);
  const DType type = read ? definition_.type_of(read->tensor) : DType::Bool;
  const bool is_tensor_float = type == DType::Float32 && read->is_tensor_float;
  if (!(is_factor_float(type) || is_factor_int(type) || is_tensor_float) ||
      definition_.expressions[expr].type != sum_type_of(type)) {
    refuse("{}", kNoProduct);
  }
  for (const AffineIndex& index : read->indices) {
    for (const auto& [axis, factor] : index.factors)
      require_from_zero(axis);
  }
  const auto is_axis = [](const AffineIndex& index) { return index.axis().has_value(); };
  if (read->inside.empty() && std::ranges::all_of(read->indices, is_axis))
    return plain_factor(*read);
  Element element{read->tensor, {}, {}};
  for (const AffineIndex& index : read->indices) {
    for (const auto& [axis, factor] : index.factors)
      if (!element.has(axis)) element.axes.push_back(axis);
  }
  element.window = std::move(read);
  return element;
}

void ProductFinder::look_at(ExprId expr, const Renamed& renamed) {
  const Expression& expression = definition_.expressions[expr];
  require_computed(expression.type);
  if (const auto* reduction = std::get_if<Reduction>(&expression.node)) {
    look_at_sum(*reduction, expression.type, renamed);
  } else if (const auto* read = std::get_if<Read>(&expression.node)) {
    const Element element = element_of(*read, renamed);
    if (!is_placeholder(read->tensor))
      look_at(compute_of(read->tensor.stage).bodies[0], renamed_of(element));
  } else if (const auto* cast = std::get_if<CastTo>(&expression.node)) {
    look_at_cast(*cast, expression.type, renamed);
  } else if (const auto* operation = std::get_if<Operation>(&expression.node)) {
    if (std::ranges::count(known_functions(), operation->op) == 0)
      refuse("{} is not done on tiles", row_of(operation->op).spelling);
    for (const ExprId operand : operation->operands)
      look_at(operand, renamed);
  }
}

/// What is read to be cast need not be computed with.
void ProductFinder::look_at_cast(const CastTo& cast, DType type, const Renamed& renamed) {
  const Expression& operand = definition_.expressions[cast.operand];
  if (is_float(operand.type) && !is_float(type)) refuse("it makes integers of floats");
  const auto* read = std::get_if<Read>(&operand.node);
  if (read == nullptr || !is_placeholder(read->tensor)) return look_at(cast.operand, renamed);
  if (!is_tile_type(operand.type)) refuse("it computes in {}", operand.type);
  element_of(*read, renamed);
}

void ProductFinder::look_at_sum(const Reduction& sum, DType type, Renamed renamed) {
  if (has_sum_) refuse("it has several sums");
  has_sum_ = true;
  const bool is_plain = sum.combiner == Combiner::Sum && sum.sources.size() == 1 &&
                        !sum.axes.empty() && !sum.condition && sum.init.empty();
  const bool is_wide = type == DType::Float32 || type == DType::Int32;
  if (!is_plain || !is_wide) refuse("its reduction is more than a sum in float32 or int32");
  product_.sums = sum.axes;
  for (const language::AxisId axis : sum.axes)
    renamed[axis] = axis;
  const auto* product = std::get_if<Operation>(&definition_.expressions[sum.sources[0]].node);
  if (product == nullptr || product->op != Operator::Mul) refuse("{}", kNoProduct);
  product_.rows = factor_of(product->operands[0], renamed);
  product_.columns = factor_of(product->operands[1], renamed);
  const DType rows = definition_.type_of(product_.rows.tensor);
  const DType columns = definition_.type_of(product_.columns.tensor);
  if (rows != columns && !(is_factor_int(rows) && is_factor_int(columns)))
    refuse("its factors have two types");
}

/// What is cut into tiles is what lies side by side in a window, else the longest axis.
void ProductFinder::set_sum() {
  const auto is_shorter = [&](language::AxisId a, language::AxisId b) {
    const Extent first = extent_of(definition_.axes[a].extent);
    const Extent second = extent_of(definition_.axes[b].extent);
    if (first.size >= 0 || second.size >= 0) return first.size < second.size;
    return first.constant < second.constant;
  };
  language::AxisId tiled = *std::ranges::max_element(product_.sums, is_shorter);
  if (product_.rows.window)
    tiled = require_window(definition_, *product_.rows.window, product_.sums);
  std::erase(product_.sums, tiled);
  product_.sums.push_back(tiled);
}

/// The column is the last axis of the output that one factor alone has, so that what lies side by
/// side in the output does so in a tile.
void ProductFinder::set_sides() {
  for (const language::AxisId axis : product_.sums) {
    if (!product_.rows.has(axis) || !product_.columns.has(axis))
      refuse("a factor does not have the axis that is summed over");
  }
  std::optional<language::AxisId> row;
  std::optional<language::AxisId> column;
  for (size_t d = product_.axes.size(); d-- > 0;) {
    const language::AxisId axis = product_.axes[d];
    const bool is_of_rows = product_.rows.has(axis);
    const bool is_of_columns = product_.columns.has(axis);
    if (!is_of_rows && !is_of_columns) refuse("an axis of its output is none of its factors");
    if (is_of_rows && is_of_columns) continue;
    if (!row && !column && is_of_rows) std::swap(product_.rows, product_.columns);
    std::optional<language::AxisId>& side = product_.rows.has(axis) ? row : column;
    if (!side) side = axis;
  }
  if (!row || !column) refuse("it is a product with a vector");
  product_.column = *column;
  product_.row_axes = {*row};
  if (product_.columns.window)
    refuse("what lies side by side in its output are the places of a window, not the filters");
  set_sum();
  if (!product_.rows.window) return;
  product_.row_axes.clear();
  for (const language::AxisId axis : product_.axes)
    if (!product_.columns.has(axis)) product_.row_axes.push_back(axis);
}

}  // namespace kiln::tile
