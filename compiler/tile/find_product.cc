// Looks at the expression of the output, through stages that are read element by element, for one
// sum of products of two elements.
//
//   C[b, i, j] = sum[k](A[b, i, k] * B[b, k, j]):  batch b, row i, column j
#include "compiler/tile/find_product.h"

#include <algorithm>
#include <optional>

namespace kiln::tile {

using namespace language;

Product ProductFinder::find() {
  find_sides();
  set_sum();
  return std::move(product_);
}

const Product& ProductFinder::find_sides() {
  product_.output = find_output();
  product_.axes = compute_of(product_.output).axes;
  look_at(compute_of(product_.output).bodies[0], same_names(product_.axes));
  if (!has_sum_) refuse_form("{}", kNoProduct);
  const bool is_float32 = type_of(product_.rows) == DType::Float32;
  if (is_float32 && !product_.rows.in_tf32) refuse_form("{}", kNoProduct);
  set_sides();
  return product_;
}

Product ProductFinder::find_factors(ExprId expr, const Renamed& renamed) {
  look_at(expr, renamed);
  if (!has_sum_) refuse_form("{}", kNoProduct);
  return std::move(product_);
}

void ProductFinder::look_at_reduction(const Reduction& sum, DType type, const Renamed& outer) {
  if (has_sum_) refuse_form("it has several sums");
  has_sum_ = true;
  const bool is_plain = sum.combiner == Combiner::Sum && sum.sources.size() == 1 &&
                        !sum.axes.empty() && !sum.condition && sum.init.empty();
  const bool is_wide = type == DType::Float32 || type == DType::Int32;
  if (!is_plain || !is_wide) refuse_form("its reduction is more than a sum in float32 or int32");
  product_.sums = sum.axes;
  Renamed renamed = outer;
  for (const language::AxisId axis : sum.axes)
    renamed[axis] = axis;
  const auto* product = std::get_if<Operation>(&definition_.expressions[sum.sources[0]].node);
  if (product == nullptr || product->op != Operator::Mul) refuse_form("{}", kNoProduct);
  product_.rows = factor_of(product->operands[0], renamed);
  product_.columns = factor_of(product->operands[1], renamed);
  const DType rows = type_of(product_.rows);
  const DType columns = type_of(product_.columns);
  if (rows != columns && !(is_factor_int(rows) && is_factor_int(columns)))
    refuse_form("its factors have two types");
  if (product_.rows.in_tf32 != product_.columns.in_tf32)
    refuse_form("one of its factors alone is tf32()");
}

language::AxisId ProductFinder::longest_sum(const Product& product) const {
  const auto is_shorter = [&](language::AxisId a, language::AxisId b) {
    const Extent first = extent_of(definition_.axes[a].extent);
    const Extent second = extent_of(definition_.axes[b].extent);
    if (first.size >= 0 || second.size >= 0) return first.size < second.size;
    return first.constant < second.constant;
  };
  return *std::ranges::max_element(product.sums, is_shorter);
}

/// What is cut into tiles is what lies side by side in a window, else the longest axis.
void ProductFinder::set_sum() {
  const language::AxisId tiled =
      product_.rows.window ? require_window(definition_, *product_.rows.window, product_.sums)
                           : longest_sum(product_);
  std::erase(product_.sums, tiled);
  product_.sums.push_back(tiled);
}

/// Axes of the output that the one factor has and the other has not.
std::vector<language::AxisId> ProductFinder::own_axes(const Element& one,
                                                      const Element& other) const {
  std::vector<language::AxisId> own;
  for (const language::AxisId axis : product_.axes) {
    if (!one.has(axis) && !other.has(axis))
      refuse_form("an axis of its output is none of its factors");
    if (one.has(axis) && !other.has(axis)) own.push_back(axis);
  }
  return own;
}

/// Whether the first factor has the columns. They are what lies side by side in the output, so that
/// it does so in a tile; but a window has rows, and so have several short axes against one, of
/// which a block has some places each.
bool ProductFinder::has_columns_first() const {
  if (product_.rows.window || product_.columns.window) return product_.columns.window.has_value();
  constexpr int64_t kFewColumns = 128;
  const std::vector<language::AxisId> first = own_axes(product_.rows, product_.columns);
  const std::vector<language::AxisId> second = own_axes(product_.columns, product_.rows);
  const auto place_of_last = [&](const std::vector<language::AxisId>& own) {
    return std::ranges::find(product_.axes, own.back()) - product_.axes.begin();
  };
  if (first.empty() || second.empty()) refuse_form("it is a product with a vector");
  const bool is_first = place_of_last(first) > place_of_last(second);
  const std::vector<language::AxisId>& columns = is_first ? first : second;
  const Extent last = extent_of(definition_.axes[columns.back()].extent);
  const bool is_short = last.size < 0 && last.constant < kFewColumns;
  const bool is_split = columns.size() > 1 && (is_first ? second : first).size() == 1;
  return is_first != (is_short && is_split);
}

void ProductFinder::set_sides() {
  for (const language::AxisId axis : product_.sums) {
    if (!product_.rows.has(axis) || !product_.columns.has(axis))
      refuse_form("a factor does not have the axis that is summed over");
  }
  if (has_columns_first()) std::swap(product_.rows, product_.columns);
  if (product_.columns.window) refuse_form("both of its factors are windows");
  product_.row_axes = own_axes(product_.rows, product_.columns);
  const std::vector<language::AxisId> columns = own_axes(product_.columns, product_.rows);
  if (product_.row_axes.empty() || columns.empty()) refuse_form("it is a product with a vector");
  product_.column = columns.back();
}

}  // namespace kiln::tile
