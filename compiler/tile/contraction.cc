// Writes a contraction down on tiles: its last row and its last column are cut into tiles, all
// other axes into single places.
//
//   C[b, i, j] = sum[k](A[b, i, k] * B[b, k, j]):  b by 1, i by 128, j by 128; for k by 64
#include "compiler/tile/contraction.h"

#include <algorithm>
#include <map>
#include <span>

#include "compiler/language/text/text_names.h"
#include "compiler/tile/find_product.h"
#include "compiler/tile/verify.h"
#include "runtime/core/error.h"

namespace kiln::tile {
namespace {

using namespace language;

/// Writes the program of a product.
class Writer {
 public:
  Writer(const Kernel& kernel, const BlockShape& shape)
      : definition_(kernel.definition),
        names_(printable_names(kernel)),
        finder_(kernel.definition),
        product_(finder_.find()),
        shape_(shape),
        row_steps_(row_steps(kernel.definition, finder_, product_, shape.rows)) {}

  Program run() {
    program_.name = names_.kernel;
    program_.sizes = names_.variables;
    for (const TensorId tensor : definition_.parameters) {
      Parameter parameter{names_.tensor_name(definition_, tensor),
                          definition_.type_of(tensor),
                          {},
                          definition_.is_output(tensor)};
      for (const ExprId extent : definition_.shape_of(tensor))
        parameter.shape.push_back(finder_.extent_of(extent));
      program_.parameters.push_back(std::move(parameter));
    }
    for (const language::AxisId axis : product_.axes)
      add_axis(axis);
    program_.block_axes = static_cast<uint32_t>(program_.axes.size());
    const ValueId result = value_of(finder_.compute_of(product_.output).bodies[0], product_.same());
    store(result);
    verify(program_);
    return std::move(program_);
  }

 private:
  int64_t step_of(language::AxisId axis) const {
    return tile::step_of(product_, shape_, row_steps_, axis);
  }

  void add_axis(language::AxisId axis) {
    numbers_[axis] = static_cast<AxisId>(program_.axes.size());
    std::string name = names_.axes[axis];
    // Two stages may each have an axis of this name.
    while (std::ranges::count(program_.axes, name, &Axis::name) > 0)
      name += "_";
    program_.axes.push_back(
        {std::move(name), finder_.extent_of(definition_.axes[axis].extent), step_of(axis)});
  }

  ValueId add(std::vector<Instruction>& body, Instruction instruction, TileType type) {
    const auto id = static_cast<ValueId>(program_.values.size());
    program_.values.push_back(std::move(type));
    instruction.results = {id};
    body.push_back(std::move(instruction));
    return id;
  }
  ValueId add(Instruction instruction, TileType type) {
    return add(program_.body, std::move(instruction), std::move(type));
  }

  TileType sums_of(DType element) const { return {element, {shape_.rows, shape_.columns}}; }

  uint32_t parameter_of(TensorId tensor) const {
    const auto parameter = std::ranges::find(definition_.parameters, tensor);
    KILN_CHECK(parameter != definition_.parameters.end());
    return static_cast<uint32_t>(parameter - definition_.parameters.begin());
  }

  /// Axes of which a tile of sums has several places: rows, then the column.
  std::vector<language::AxisId> tiled_axes() const {
    std::vector<language::AxisId> axes = product_.row_axes;
    axes.push_back(product_.column);
    return axes;
  }

  /// The view of a tensor whose tiles have single places first, then `last`, and where in it a tile
  /// is.
  std::pair<ViewId, std::vector<AxisId>> view_of(const Element& element,
                                                 const std::vector<language::AxisId>& last) {
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
    program_.views.push_back(std::move(view));
    return {static_cast<ViewId>(program_.views.size() - 1), std::move(at)};
  }

  /// A tile of an element, as a tile of these extents.
  ValueId load(std::vector<Instruction>& body, const Element& element,
               const std::vector<language::AxisId>& last, const std::vector<int64_t>& extents) {
    const auto [view, at] = view_of(element, last);
    const TileType type{definition_.type_of(element.tensor), program_.views[view].tile};
    const ValueId tile = add(body, {.what = Load{view, at}, .operands = {}, .results = {}}, type);
    if (type.shape == extents) return tile;
    return add(body, {.what = Reshape{}, .operands = {tile}, .results = {}},
               {type.element, extents});
  }

  ValueId load_window(std::vector<Instruction>& body, const FactorRead& read) {
    Window window;
    window.parameter = parameter_of(read.tensor);
    for (const AffineIndex& index : read.indices) {
      Index& written = window.indices.emplace_back();
      written.offset = index.constant;
      // In the order of axes, which is that of the definition for what it names.
      for (const auto& [axis, factor] : index.factors)
        written.terms.push_back({numbers_.at(axis), factor});
      std::ranges::sort(written.terms, {}, &Term::axis);
    }
    for (const language::AxisId axis : product_.row_axes)
      window.rows.push_back(numbers_.at(axis));
    window.along = numbers_.at(product_.sum());
    return add(body, {.what = std::move(window), .operands = {}, .results = {}},
               {definition_.type_of(read.tensor), {shape_.rows, shape_.steps}});
  }

  ValueId write_sum() {
    const TileType type = sums_of(sum_type_of(definition_.type_of(product_.rows.tensor)));
    const ValueId zero = add({.what = Constant{0}, .operands = {}, .results = {}}, type);
    Instruction instruction{.what = For{}, .operands = {zero}, .results = {}};
    For loop;
    for (const language::AxisId axis : product_.sums) {
      add_axis(axis);
      loop.axes.push_back(numbers_.at(axis));
    }
    const auto result = static_cast<ValueId>(program_.values.size());
    loop.carried = {result + 1};
    program_.values.insert(program_.values.end(), 2, type);
    const ValueId a = product_.rows.window
                          ? load_window(loop.body, *product_.rows.window)
                          : load(loop.body, product_.rows, {product_.row_axes[0], product_.sum()},
                                 {shape_.rows, shape_.steps});
    const ValueId b = load(loop.body, product_.columns, {product_.sum(), product_.column},
                           {shape_.steps, shape_.columns});
    loop.yields = {
        add(loop.body, {.what = Mma{}, .operands = {a, b, loop.carried[0]}, .results = {}}, type)};
    instruction.what = std::move(loop);
    instruction.results = {result};
    program_.body.push_back(std::move(instruction));
    return result;
  }

  /// What is the same for all places of some axes is made for each.
  ValueId load_spread(const Element& element) {
    std::vector<language::AxisId> last;
    std::vector<int64_t> extents;
    std::vector<int64_t> whole;
    for (const language::AxisId axis : tiled_axes()) {
      whole.push_back(step_of(axis));
      extents.push_back(element.has(axis) ? step_of(axis) : 1);
      if (element.has(axis)) last.push_back(axis);
    }
    const TileType type = sums_of(definition_.type_of(element.tensor));
    const auto has = [&](language::AxisId axis) { return element.has(axis); };
    if (std::ranges::none_of(product_.row_axes, has)) {
      extents = {1, extents.back()};
      whole = type.shape;
    }
    ValueId tile = load(program_.body, element, last, extents);
    if (extents != whole) {
      tile = add({.what = Broadcast{}, .operands = {tile}, .results = {}}, {type.element, whole});
    }
    if (whole == type.shape) return tile;
    return add({.what = Reshape{}, .operands = {tile}, .results = {}}, type);
  }

  ValueId value_of(ExprId expr, const Renamed& renamed) {
    const Expression& expression = definition_.expressions[expr];
    const TileType type = sums_of(expression.type);
    if (std::holds_alternative<Reduction>(expression.node)) return write_sum();
    if (const auto* constant = std::get_if<FloatConstant>(&expression.node))
      return add({.what = Constant{constant->value}, .operands = {}, .results = {}}, type);
    if (const auto* constant = std::get_if<IntegerConstant>(&expression.node)) {
      const auto number = static_cast<double>(constant->value);
      return add({.what = Constant{number}, .operands = {}, .results = {}}, type);
    }
    if (const auto* read = std::get_if<Read>(&expression.node)) {
      const Element element = finder_.element_of(*read, renamed);
      if (finder_.is_placeholder(read->tensor)) return load_spread(element);
      return value_of(finder_.compute_of(read->tensor.stage).bodies[0],
                      finder_.renamed_of(element));
    }
    if (const auto* cast = std::get_if<CastTo>(&expression.node)) {
      const ValueId operand = value_of(cast->operand, renamed);
      if (program_.values[operand] == type) return operand;
      return add({.what = Cast{}, .operands = {operand}, .results = {}}, type);
    }
    if (const auto* operation = std::get_if<Operation>(&expression.node)) {
      std::vector<ValueId> operands;
      for (const ExprId operand : operation->operands)
        operands.push_back(value_of(operand, renamed));
      return add({.what = Apply{operation->op}, .operands = std::move(operands), .results = {}},
                 type);
    }
    KILN_CHECK(false);  // no other expression is computed with
  }

  void store(ValueId result) {
    const Element element{{product_.output, 0}, product_.axes, {}};
    const auto [view, at] = view_of(element, tiled_axes());
    const TileType type{definition_.type_of(element.tensor), program_.views[view].tile};
    if (type.shape != program_.values[result].shape)
      result = add({.what = Reshape{}, .operands = {result}, .results = {}}, type);
    program_.body.push_back({.what = Store{view, at}, .operands = {result}, .results = {}});
  }

  const Definition& definition_;
  const SourceMap names_;
  ProductFinder finder_;
  const Product product_;
  const BlockShape shape_;
  const std::vector<int64_t> row_steps_;
  Program program_;
  std::map<language::AxisId, AxisId> numbers_;
};

}  // namespace

Program contraction(const Kernel& kernel, const BlockShape& shape) {
  return Writer(kernel, shape).run();
}

}  // namespace kiln::tile
