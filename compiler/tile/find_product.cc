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
  product_.output = find_output();
  product_.axes = compute_of(product_.output).axes;
  look_at(compute_of(product_.output).bodies[0], same_names(product_.axes));
  if (!has_sum_) refuse_form("{}", kNoProduct);
  const bool is_float32 = definition_.type_of(product_.rows.tensor) == DType::Float32;
  if (is_float32 && !product_.rows.in_tf32) refuse_form("{}", kNoProduct);
  set_sides();
  return std::move(product_);
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
  const DType rows = definition_.type_of(product_.rows.tensor);
  const DType columns = definition_.type_of(product_.columns.tensor);
  if (rows != columns && !(is_factor_int(rows) && is_factor_int(columns)))
    refuse_form("its factors have two types");
  if (product_.rows.in_tf32 != product_.columns.in_tf32)
    refuse_form("one of its factors alone is tf32()");
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
      refuse_form("a factor does not have the axis that is summed over");
  }
  std::optional<language::AxisId> row;
  std::optional<language::AxisId> column;
  for (size_t d = product_.axes.size(); d-- > 0;) {
    const language::AxisId axis = product_.axes[d];
    const bool is_of_rows = product_.rows.has(axis);
    const bool is_of_columns = product_.columns.has(axis);
    if (!is_of_rows && !is_of_columns) refuse_form("an axis of its output is none of its factors");
    if (is_of_rows && is_of_columns) continue;
    if (!row && !column && is_of_rows) std::swap(product_.rows, product_.columns);
    std::optional<language::AxisId>& side = product_.rows.has(axis) ? row : column;
    if (!side) side = axis;
  }
  if (!row || !column) refuse_form("it is a product with a vector");
  product_.column = *column;
  product_.row_axes = {*row};
  if (product_.columns.window)
    refuse_form("what lies side by side in its output are the places of a window, not the filters");
  set_sum();
  if (!product_.rows.window) return;
  product_.row_axes.clear();
  for (const language::AxisId axis : product_.axes)
    if (!product_.columns.has(axis)) product_.row_axes.push_back(axis);
}

}  // namespace kiln::tile
