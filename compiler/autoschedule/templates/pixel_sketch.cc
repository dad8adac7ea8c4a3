// A convolution with a window of one element: a matrix product whose columns are all pixels of an
// image. A tile of pixels is copied for all channels and multiplied with all filters.
//
//   Y[f, y, x] = sum[c](X[c, y, x] * W[f, c])  ->  Y[f, p] = sum[c](X[c, p] * W[f, c])
#include <algorithm>

#include "compiler/analysis/prove.h"
#include "compiler/autoschedule/templates/convolution.h"
#include "compiler/ir/build.h"
#include "compiler/ir/mutator.h"

namespace kiln::autoschedule {
namespace {

/// Tiles of pixels, for all rows; the stage's loops in that order.
std::pair<AxisId, AxisId> write_tiles(const Convolution& convolution, StepWriter& steps,
                                      const std::vector<AxisId>& outer, int64_t lanes) {
  const Contraction& contraction = convolution.tiling.contraction;
  const StageId id = convolution.tiling.stage;
  const AxisId pixels = steps.fuse(id, {convolution.image.line, contraction.column});
  const auto tile = steps.split(id, pixels, lanes);
  steps.reorder(id, joined({outer, {tile.first, contraction.row, tile.second}}));
  return tile;
}

void write_pixels(const StageGraph& graph, const Convolution& convolution, StepWriter& steps,
                  const Values& values) {
  const Tiling& tiling = convolution.tiling;
  const StageId id = tiling.stage;
  const int64_t lanes = values.get("lanes", 1);
  std::vector<AxisId> outer = tiling.batch;
  std::erase(outer, convolution.image.line);
  write_tiles(convolution, steps, outer, lanes);
  const size_t loops = outer.size() + 3;
  const auto made = steps.cache_write(id, "global");
  const StageId sums = made.first;
  const std::vector<AxisId>& axes = made.second;
  const auto at = [&](size_t i) { return axes.begin() + static_cast<std::ptrdiff_t>(i); };
  const std::vector<AxisId> own_outer(axes.begin(), at(outer.size()));
  const std::vector<AxisId> reduce(at(loops), axes.end());
  const AxisId own_tiles = axes[outer.size()];
  const AxisId own_pixel = axes[outer.size() + 2];
  const auto [rows, row] = steps.split(sums, axes[outer.size() + 1], values.get("rows", 1));
  steps.reorder(sums, joined({own_outer, {own_tiles, rows}, reduce, {row, own_pixel}}));
  std::vector<AxisId> layout;
  for (size_t i = 0; i < outer.size(); ++i) {
    if (std::ranges::find(tiling.panel_batch, outer[i]) != tiling.panel_batch.end())
      layout.push_back(own_outer[i]);
  }
  const auto [copy, places] =
      steps.cache_read(tiling.panel, sums, joined({layout, {own_tiles}, reduce, {own_pixel}}));
  steps.vectorize(sums, own_pixel);
  steps.unroll(sums, row);
  steps.vectorize(copy, places.back());

  // Sums are stored block by block, while they are still in L1.
  const auto [result_tiles, result_pixel] = write_tiles(convolution, steps, outer, lanes);
  const auto [blocks, result_row] =
      split_tile(graph, steps, id, tiling.contraction.row, values.get("rows", 1));
  steps.unroll(id, result_row);
  steps.vectorize(id, result_pixel);
  steps.compute_at(sums, id, blocks);
  steps.compute_at(copy, id, result_tiles);
  if (values.get("parallel", 0) == 0) return;
  for (const AxisId axis : joined({outer, {result_tiles}}))
    steps.parallel(id, axis);
}

}  // namespace

bool may_have_pixels(const StageGraph& graph, const Convolution& convolution) {
  const Image& image = convolution.image;
  const Contraction& contraction = convolution.tiling.contraction;
  if (image.reach > 0 || image.stride > 1 || convolution.is_apart ||
      !may_have_patches(graph, convolution)) {
    return false;
  }
  const std::vector<ir::Expr>& indices = contraction.column_factor->indices;
  const std::vector<ir::Expr>& shape = graph[image.source.stage].shapes[image.source.output];
  const size_t last = indices.size() - 1;
  ir::Substitution single;  // a window of one element still has its axes
  for (const AxisId axis : convolution.tiling.reduce) {
    if (constant_extent(graph, axis) == 1)
      single[graph.axes[axis].value] = graph.axes[axis].minimum;
  }
  const auto is_whole = [&](size_t dimension, AxisId axis) {
    const ir::Expr index = analysis::simplify(ir::substitute(indices[dimension], single));
    return index == ir::Expr(graph.axes[axis].value) &&
           ir::as_const_int(analysis::simplify(shape[dimension])) == constant_extent(graph, axis);
  };
  return last > 0 && is_whole(last, contraction.column) && is_whole(last - 1, image.line);
}

double pixels_cycles(const Convolution& convolution) {
  ContractionSize size = size_in_one_line(convolution);
  const TileShape tile = best_tile(size);
  // A tile is copied for all rows that it is multiplied with, one line after the other: of what is
  // no larger than L1 nothing waits for L2.
  const double copied_tile =
      static_cast<double>(size.steps * tile.lanes) * convolution.element_bytes;
  if (copied_tile <= static_cast<double>(convolution.machine.l1_bytes)) size.vector_cycles = 0;
  // To the others of its tile, and of the result.
  const auto copied = static_cast<double>((size.steps + size.rows) * size.columns);
  return tile_cycles(size, tile) + copied_element_cycles(convolution) * copied;
}

Sketch pixels_sketch(const StageGraph& graph, const Convolution& convolution, bool parallel) {
  return {.name = "tiles of pixels",
          .parameters =
              one_line_parameters(graph, convolution, size_in_one_line(convolution), parallel),
          .write = [&graph, convolution](StepWriter& steps, const Values& values) {
            write_pixels(graph, convolution, steps, values);
          }};
}

}  // namespace kiln::autoschedule
