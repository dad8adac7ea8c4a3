// Finds a contraction in a definition and writes it down on tiles. An axis of the output that both
// factors have is a batch; that the first alone has, a row; the second alone, a column. The last
// row and the last column are cut into tiles, all other axes into single places.
//
//   C[b, i, j] = sum[k](A[b, i, k] * B[b, k, j]):  b by 1, i by 128, j by 128; for k by 64
#include "compiler/tile/contraction.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>

#include "compiler/ir/gpu_arch.h"
#include "compiler/language/text/text_names.h"
#include "compiler/tile/verify.h"
#include "runtime/core/error.h"

namespace kiln::tile {
namespace {

using namespace language;

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorKind::Unsupported, "TILE_FORM", format, std::forward<Args>(args)...);
}

/// An element that a body reads: a tensor and, for each of its dimensions, an axis of the output or
/// the one that is summed over.
struct Element {
  TensorId tensor;
  std::vector<language::AxisId> axes;

  bool has(language::AxisId axis) const { return std::ranges::count(axes, axis) > 0; }
};

/// What the axes of an inlined stage are called in the output.
using Renamed = std::map<language::AxisId, language::AxisId>;

/// What there is to know before there are tiles.
struct Product {
  StageId output = 0;
  std::vector<language::AxisId> axes;  // of the output
  Element rows;                        // the factor without the column
  Element columns;
  language::AxisId row = 0;
  language::AxisId column = 0;
  language::AxisId sum = 0;
};

void require_tiles_of(DType type) {
  if (!ir::is_short_float(type) && type != DType::Float32) refuse("it computes in {}", type);
}

class Finder {
 public:
  explicit Finder(const Definition& definition) : definition_(definition) {}

  Product find() {
    std::optional<TensorId> output;
    for (const TensorId parameter : definition_.parameters) {
      require_tiles_of(definition_.type_of(parameter));
      if (!definition_.is_output(parameter)) continue;
      if (output) refuse("it has several outputs");
      output = parameter;
    }
    KILN_CHECK(output.has_value());
    product_.output = output->stage;
    product_.axes = compute_of(output->stage).axes;
    Renamed same;
    for (const language::AxisId axis : product_.axes)
      same[axis] = axis;
    look_at(compute_of(output->stage).bodies[0], same);
    if (!has_sum_) refuse("it is no sum of products of 16-bit floats");
    set_sides();
    return std::move(product_);
  }

  const Compute& compute_of(StageId stage) const {
    const auto* compute = std::get_if<Compute>(&definition_.stages[stage]);
    if (compute == nullptr || compute->bodies.size() != 1)
      refuse("it is more than computed elements");
    return *compute;
  }

  /// The extent of a dimension or an axis.
  Extent extent_of(ExprId expr) const {
    const auto& node = definition_.expressions[expr].node;
    if (const auto* constant = std::get_if<IntegerConstant>(&node))
      return {.constant = constant->value, .size = -1};
    if (const auto* use = std::get_if<VariableUse>(&node))
      return {.constant = 0, .size = static_cast<int32_t>(use->variable)};
    refuse("an extent is neither a number nor a size");
  }

  /// What is read, where it is the element of each axis and all of the tensor.
  Element element_of(const Read& read, const Renamed& renamed) const {
    Element element{read.tensor, {}};
    const std::vector<ExprId> shape = definition_.shape_of(read.tensor);
    for (size_t d = 0; d < read.indices.size(); ++d) {
      const auto* use = std::get_if<AxisUse>(&definition_.expressions[read.indices[d]].node);
      const auto found = use != nullptr ? renamed.find(use->axis) : renamed.end();
      if (found == renamed.end()) refuse("an index of what it reads is more than an axis");
      const language::Axis& axis = definition_.axes[found->second];
      const auto* minimum =
          std::get_if<IntegerConstant>(&definition_.expressions[axis.minimum].node);
      if (minimum == nullptr || minimum->value != 0) refuse("an axis does not begin at 0");
      if (element.has(found->second)) refuse("what it reads has one axis twice");
      if (extent_of(axis.extent) != extent_of(shape[d])) refuse("it reads a part of a tensor");
      element.axes.push_back(found->second);
    }
    if (element.axes.empty()) refuse("it reads a tensor without dimensions");
    return element;
  }

  bool is_placeholder(TensorId tensor) const {
    return std::holds_alternative<Placeholder>(definition_.stages[tensor.stage]);
  }

  /// The axes of a stage that is read at `element`, as the output calls them.
  Renamed renamed_of(const Element& element) const {
    Renamed renamed;
    const Compute& compute = compute_of(element.tensor.stage);
    for (size_t d = 0; d < compute.axes.size(); ++d)
      renamed[compute.axes[d]] = element.axes[d];
    return renamed;
  }

  /// A factor as it stands in a sum: a 16-bit element as a float32.
  Element factor_of(ExprId expr, const Renamed& renamed) const {
    const auto* cast = std::get_if<CastTo>(&definition_.expressions[expr].node);
    const auto* read =
        cast != nullptr ? std::get_if<Read>(&definition_.expressions[cast->operand].node) : nullptr;
    if (read == nullptr || definition_.expressions[expr].type != DType::Float32 ||
        !ir::is_short_float(definition_.type_of(read->tensor)) || !is_placeholder(read->tensor)) {
      refuse("it is no sum of products of 16-bit floats");
    }
    return element_of(*read, renamed);
  }

 private:
  void look_at(ExprId expr, const Renamed& renamed) {
    const Expression& expression = definition_.expressions[expr];
    require_tiles_of(expression.type);
    if (const auto* reduction = std::get_if<Reduction>(&expression.node)) {
      look_at_sum(*reduction, expression.type, renamed);
    } else if (const auto* read = std::get_if<Read>(&expression.node)) {
      const Element element = element_of(*read, renamed);
      if (!is_placeholder(read->tensor))
        look_at(compute_of(read->tensor.stage).bodies[0], renamed_of(element));
    } else if (const auto* cast = std::get_if<CastTo>(&expression.node)) {
      look_at(cast->operand, renamed);
    } else if (const auto* operation = std::get_if<Operation>(&expression.node)) {
      if (std::ranges::count(known_functions(), operation->op) == 0)
        refuse("{} is not done on tiles", row_of(operation->op).spelling);
      for (const ExprId operand : operation->operands)
        look_at(operand, renamed);
    }
  }

  void look_at_sum(const Reduction& sum, DType type, Renamed renamed) {
    if (has_sum_) refuse("it has several sums");
    has_sum_ = true;
    const bool is_plain = sum.combiner == Combiner::Sum && sum.sources.size() == 1 &&
                          sum.axes.size() == 1 && !sum.condition && sum.init.empty() &&
                          type == DType::Float32;
    if (!is_plain) refuse("its reduction is more than a sum in float32 along one axis");
    product_.sum = sum.axes[0];
    renamed[product_.sum] = product_.sum;
    const auto* product = std::get_if<Operation>(&definition_.expressions[sum.sources[0]].node);
    if (product == nullptr || product->op != Operator::Mul)
      refuse("it is no sum of products of 16-bit floats");
    product_.rows = factor_of(product->operands[0], renamed);
    product_.columns = factor_of(product->operands[1], renamed);
    if (definition_.type_of(product_.rows.tensor) != definition_.type_of(product_.columns.tensor))
      refuse("its factors have two types");
  }

  /// The column is the last axis of the output that one factor alone has, so that what lies side by
  /// side in the output does so in a tile.
  void set_sides() {
    if (!product_.rows.has(product_.sum) || !product_.columns.has(product_.sum))
      refuse("a factor does not have the axis that is summed over");
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
    product_.row = *row;
    product_.column = *column;
  }

  const Definition& definition_;
  Product product_;
  bool has_sum_ = false;
};

// The first is what keeps tensor cores of sm_90 busiest; the others are for products that have too
// few of its blocks for all multiprocessors of an H100, of which there are 132.
constexpr BlockShape kShapes[] = {{.rows = 128, .columns = 256, .steps = 64, .warps = 8},
                                  {.rows = 128, .columns = 128, .steps = 64, .warps = 0},
                                  {.rows = 64, .columns = 128, .steps = 64, .warps = 0},
                                  {.rows = 64, .columns = 64, .steps = 64, .warps = 0}};
constexpr double kFewBlocks = 120;
constexpr int64_t kLeast = 16;         // of each side of a product of tiles
constexpr int64_t kOpenExtent = 4096;  // of what the call brings

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
    Renamed same;
    for (const language::AxisId axis : product_.axes)
      same[axis] = axis;
    const ValueId result = value_of(finder_.compute_of(product_.output).bodies[0], same);
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
    const TileType type = sums_of(DType::Float32);
    const ValueId zero = add({.what = Constant{0}, .operands = {}, .results = {}}, type);
    Instruction instruction{.what = For{}, .operands = {zero}, .results = {}};
    For loop;
    add_axis(product_.sum);
    loop.axis = numbers_.at(product_.sum);
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
    KILN_CHECK(false);  // no other expression is a float
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
  Finder finder_;
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
  Finder finder(kernel.definition);
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
  BlockShape shape;
  for (const BlockShape& candidate : kShapes) {
    shape = candidate;
    const double blocks =
        places * parts(product.row, shape.rows) * parts(product.column, shape.columns);
    if (blocks >= kFewBlocks) break;
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
