// The layout of filters for vectors of channels, as a sketch copies them and as a program has them
// copied once. The second is recognised by how the filters are read: o // 32 and o % 32.
#include "compiler/autoschedule/templates/filter_panels.h"

#include <algorithm>

#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"

namespace kiln::autoschedule {

std::optional<FilterPanels> filter_panels(const StageGraph& graph, const Convolution& convolution,
                                          int64_t channels) {
  const Tiling& tiling = convolution.tiling;
  const Contraction& contraction = tiling.contraction;
  const std::vector<AxisId> axes = joined({tiling.row_batch, {contraction.row}, tiling.reduce});
  const ir::TensorRead& read = *contraction.row_factor;
  if (!only_reorders(graph, read, axes) || convolution.numbers.size.rows % channels != 0)
    return std::nullopt;
  FilterPanels panels{
      .filters = tiling.rows, .order = {}, .split = tiling.row_batch.size(), .channels = channels};
  for (const AxisId axis : axes) {
    const auto at = std::ranges::find(read.indices, ir::Expr(graph.axes[axis].value));
    if (at == read.indices.end()) return std::nullopt;
    panels.order.push_back(static_cast<size_t>(at - read.indices.begin()));
  }
  return panels;
}

std::optional<int64_t> channels_of_panels(const StageGraph& graph, const Convolution& convolution) {
  const Tiling& tiling = convolution.tiling;
  const ir::TensorRead& read = *tiling.contraction.row_factor;
  const std::vector<ir::Expr>& shape = graph[read.stage].shapes[read.output];
  const std::optional<int64_t> channels = ir::as_const_int(analysis::simplify(shape.back()));
  std::vector<ir::Expr> wanted;
  for (const AxisId axis : joined({tiling.row_batch, {tiling.contraction.row}, tiling.reduce}))
    wanted.emplace_back(graph.axes[axis].value);
  if (!channels || *channels <= 0 || read.indices.size() != wanted.size() + 1) return std::nullopt;
  const ir::Expr row = wanted[tiling.row_batch.size()];
  wanted[tiling.row_batch.size()] = ir::floordiv(row, ir::index(*channels));
  wanted.push_back(ir::floormod(row, ir::index(*channels)));
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!ir::equal_trees(analysis::simplify(read.indices[i]), wanted[i])) return std::nullopt;
  }
  return channels;
}

}  // namespace kiln::autoschedule
