// A contraction as the product of two matrices: rows are the axes of one factor, columns those of
// the other, whatever the number of either.
//
//   Y[b, m, y, x] = sum[c, r, s](X[b, c, y + r, x + s] * F[m, c, r, s])
//     ->  rows m, columns b, y, x
#include "compiler/autoschedule/recognise/sides.h"

#include <algorithm>
#include <numeric>

#include "compiler/analysis/prove.h"
#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/ir/build.h"

namespace kiln::autoschedule {

Sides sides_of(const StageGraph& graph, StageId stage, const Contraction& contraction) {
  Sides sides;
  for (const AxisId axis : columns_of(graph[stage])) {
    const bool is_of_rows = is_used_in(graph, *contraction.row_factor, axis);
    const bool is_of_columns = is_used_in(graph, *contraction.column_factor, axis);
    if (is_of_rows == is_of_columns) {
      sides.batch.push_back(axis);
    } else {
      (is_of_rows ? sides.rows : sides.columns).push_back(axis);
    }
  }
  return sides;
}

std::optional<int64_t> constant_extent_of(const StageGraph& graph,
                                          const std::vector<AxisId>& axes) {
  // Of what is larger nobody asks how much.
  constexpr int64_t kMost = int64_t{1} << 30;
  int64_t product = 1;
  for (const AxisId axis : axes) {
    const std::optional<int64_t> extent = constant_extent(graph, axis);
    if (!extent) return std::nullopt;
    product = std::min(kMost, product * std::min(kMost, std::max<int64_t>(*extent, 1)));
  }
  return product;
}

std::optional<AxisId> longest_axis(const StageGraph& graph, const std::vector<AxisId>& axes) {
  std::optional<AxisId> longest;
  for (const AxisId axis : axes) {
    const std::optional<int64_t> extent = constant_extent(graph, axis);
    if (extent && (!longest || *extent > *constant_extent(graph, *longest))) longest = axis;
  }
  return longest;
}

std::optional<CutDimension> cut_dimension(const StageGraph& graph, const ir::Expr& index,
                                          const std::vector<AxisId>& axes) {
  for (const AxisId inner : axes) {
    const std::optional<int64_t> length = constant_extent(graph, inner);
    if (!length || !ir::uses_var(index, graph.axes[inner].value)) continue;
    for (const AxisId outer : axes) {
      if (outer == inner || !ir::uses_var(index, graph.axes[outer].value)) continue;
      const ir::Expr cut =
          ir::Expr(graph.axes[outer].value) * *length + ir::Expr(graph.axes[inner].value);
      if (ir::is_const(analysis::simplify(index - cut), 0)) return CutDimension{outer, inner};
    }
  }
  return std::nullopt;
}

bool is_permuted(const StageGraph& graph, const ir::TensorRead& read,
                 const std::vector<AxisId>& axes) {
  std::vector<AxisId> left = axes;
  for (const ir::Expr& index : read.indices) {
    const auto axis = std::ranges::find_if(
        left, [&](AxisId each) { return index == ir::Expr(graph.axes[each].value); });
    if (axis != left.end()) {
      left.erase(axis);
      continue;
    }
    const std::optional<CutDimension> cut = cut_dimension(graph, index, left);
    if (!cut) return false;
    std::erase_if(left, [&](AxisId each) { return each == cut->outer || each == cut->inner; });
  }
  return left.empty();
}

bool begins_at_multiples(const StageGraph& graph, const ir::Expr& index, AxisId axis) {
  const std::optional<int64_t> length = constant_extent(graph, axis);
  if (!length || *length < 1 || !ir::uses_var(index, graph.axes[axis].value)) return false;
  const ir::Expr start = index - ir::Expr(graph.axes[axis].value);
  return ir::is_const(analysis::simplify(ir::floormod(start, ir::index(*length))), 0);
}

int64_t elements_in_order(const StageGraph& graph, const ir::TensorRead& read,
                          const std::vector<AxisId>& axes) {
  const std::vector<ir::Expr>& shape = graph[read.stage].shapes[read.output];
  int64_t elements = 1;
  for (size_t i = 1; i <= std::min(axes.size(), read.indices.size()); ++i) {
    const AxisId axis = axes[axes.size() - i];
    const size_t dimension = read.indices.size() - i;
    const std::optional<int64_t> length = ir::as_const_int(shape[dimension]);
    if (!length || !begins_at_multiples(graph, read.indices[dimension], axis)) return elements;
    const int64_t extent = *constant_extent(graph, axis);
    if (*length % extent != 0) return elements * std::gcd(*length, extent);
    elements *= extent;
    if (*length != extent) return elements;
  }
  return elements;
}

int64_t common_width(const StageGraph& graph, const ir::TensorRead& read, AxisId axis) {
  const int64_t row = ir::as_const_int(graph[read.stage].shapes[read.output].back()).value_or(0);
  return std::gcd(constant_extent(graph, axis).value_or(1), row);
}

bool may_be_one_loop(const StageGraph& graph, const std::vector<AxisId>& axes) {
  return std::ranges::all_of(axes.begin() + (axes.empty() ? 0 : 1), axes.end(),
                             [&](AxisId axis) { return constant_extent(graph, axis).has_value(); });
}

}  // namespace kiln::autoschedule
