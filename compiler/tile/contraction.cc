// Writes a contraction down on tiles: its last row and its last column are cut into tiles, all
// other axes into single places.
//
//   C[b, i, j] = sum[k](A[b, i, k] * B[b, k, j]):  b by 1, i by 128, j by 128; for k by 64
#include "compiler/tile/contraction.h"

#include <algorithm>
#include <bit>
#include <map>
#include <span>

#include "compiler/language/text/text_names.h"
#include "compiler/tile/find_product.h"
#include "compiler/tile/verify.h"
#include "runtime/core/error.h"

namespace kiln::tile {
namespace {

using namespace language;

// The first is what keeps tensor cores of sm_90 busiest; the others are for products that have too
// few of its blocks for all multiprocessors of an H100, of which there are 132.
constexpr BlockShape kShapes[] = {{.rows = 128, .columns = 256, .steps = 64, .warps = 8},
                                  {.rows = 128, .columns = 128, .steps = 64, .warps = 0},
                                  {.rows = 64, .columns = 128, .steps = 64, .warps = 0},
                                  {.rows = 64, .columns = 64, .steps = 64, .warps = 0}};
constexpr int64_t kStepBytes = 128;  // that a block moves of a row at once: 64 steps of 16 bits
constexpr double kFewBlocks = 120;
constexpr int64_t kLeast = 16;         // of each side of a product of tiles
constexpr int64_t kOpenExtent = 4096;  // of what the call brings

/// Tensor cores add 8-bit floats up in fewer bits than a float32 has, so each part of a sum is
/// added to the whole in float32, which is in other registers.
bool has_sums_twice(DType factor) { return is_float(factor) && size_of(factor) == 1; }

/// No more than the extent needs.
int64_t shortened(int64_t step, int64_t extent) {
  const auto needed = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(extent)));
  return std::min(step, std::max(kLeast, needed));
}

/// Writes the program of a product.
class Writer {
 public:
  Writer(const Kernel& kernel, const BlockShape& shape)
      : definition_(kernel.definition),
        names_(printable_names(kernel)),
        finder_(kernel.definition),
        product_(finder_.find()),
        shape_(shape) {}

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
    if (axis == product_.row) return shape_.rows;
    if (axis == product_.column) return shape_.columns;
    return axis == product_.sum ? shape_.steps : 1;
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
    const auto parameter = std::ranges::find(definition_.parameters, element.tensor);
    KILN_CHECK(parameter != definition_.parameters.end());
    view.parameter = static_cast<uint32_t>(parameter - definition_.parameters.begin());
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

  ValueId write_sum() {
    const TileType type = sums_of(sum_type_of(definition_.type_of(product_.rows.tensor)));
    const ValueId zero = add({.what = Constant{0}, .operands = {}, .results = {}}, type);
    Instruction instruction{.what = For{}, .operands = {zero}, .results = {}};
    For loop;
    add_axis(product_.sum);
    loop.axes = {numbers_.at(product_.sum)};
    const auto result = static_cast<ValueId>(program_.values.size());
    loop.carried = {result + 1};
    program_.values.insert(program_.values.end(), 2, type);
    const ValueId a =
        load(loop.body, product_.rows, {product_.row, product_.sum}, {shape_.rows, shape_.steps});
    const ValueId b = load(loop.body, product_.columns, {product_.sum, product_.column},
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
    for (const language::AxisId axis : {product_.row, product_.column}) {
      extents.push_back(element.has(axis) ? step_of(axis) : 1);
      if (element.has(axis)) last.push_back(axis);
    }
    const ValueId tile = load(program_.body, element, last, extents);
    const TileType type = sums_of(definition_.type_of(element.tensor));
    if (extents == type.shape) return tile;
    return add({.what = Broadcast{}, .operands = {tile}, .results = {}}, type);
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
    const Element element{{product_.output, 0}, product_.axes};
    const auto [view, at] = view_of(element, {product_.row, product_.column});
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
  Program program_;
  std::map<language::AxisId, AxisId> numbers_;
};

}  // namespace

Program contraction(const Kernel& kernel, const BlockShape& shape) {
  return Writer(kernel, shape).run();
}

BlockShape block_shape(const Kernel& kernel) {
  ProductFinder finder(kernel.definition);
  const Product product = finder.find();
  const auto extent = [&](language::AxisId axis) {
    const Extent found = finder.extent_of(kernel.definition.axes[axis].extent);
    return found.size < 0 ? std::max<int64_t>(found.constant, 1) : kOpenExtent;
  };
  const auto parts = [&](language::AxisId axis, int64_t step) {
    const int64_t whole = (extent(axis) + step - 1) / step;
    return static_cast<double>(whole);
  };
  double places = 1;
  for (const language::AxisId axis : product.axes) {
    if (axis != product.row && axis != product.column) places *= static_cast<double>(extent(axis));
  }
  const DType factor = kernel.definition.type_of(product.rows.tensor);
  const bool is_twice = has_sums_twice(factor);
  BlockShape shape;
  for (const BlockShape& candidate : std::span(kShapes).subspan(is_twice ? 1 : 0)) {
    shape = candidate;
    const double blocks =
        places * parts(product.row, shape.rows) * parts(product.column, shape.columns);
    if (blocks >= kFewBlocks) break;
  }
  shape.steps = kStepBytes / size_of(factor);
  if (is_twice && shape.rows == kShapes[1].rows) {
    shape.warps = 8;
    // Rows of the factor that go along its sums need no turning, which takes registers, too.
    if (product.rows.axes.back() != product.sum) shape.steps /= 2;
  }
  const BlockShape full = shape;
  shape.rows = shortened(shape.rows, extent(product.row));
  shape.columns = shortened(shape.columns, extent(product.column));
  // tileiras (13.5) unrolls shorter loops, which then fetch nothing ahead and take it seconds.
  constexpr double kFewParts = 12;
  if (parts(product.sum, shape.steps) < kFewParts &&
      parts(product.sum, shape.steps / 2) >= kFewParts)
    shape.steps /= 2;
  shape.steps = shortened(shape.steps, extent(product.sum));
  const bool is_full = shape.rows == full.rows && shape.columns == full.columns;
  if (!is_full) shape.warps = 0;
  return shape;
}

}  // namespace kiln::tile
