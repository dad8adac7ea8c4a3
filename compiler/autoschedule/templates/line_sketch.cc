// A convolution as outer products along the lines of the image, a block of lines after the other.
// The lines that a block reads are copied or padded where it begins.
//
//   for y_block: pad X[.., y_block + window, ..]; for y, x_tile, f_tile, c, r, s: tile += X * W
//
// A block of the image stays in L2 while all filters pass; the copy removes the distance of whole
// images between its channels, and with it conflict misses and TLB misses.
#include "compiler/autoschedule/templates/convolution.h"

namespace kiln::autoschedule {
namespace {

/// A line of an image with its zeros around begins anywhere, and so do vectors of it. Of one whose
/// elements are apart LLVM loads as many as the next power of two has, one by one.
ContractionSize size_of_lines(const Convolution& convolution) {
  ContractionSize size = convolution.numbers.size;
  size.vector_loads = 2;
  size.whole_vectors = convolution.is_apart;
  return size;
}

/// What a core does for a line. Columns that are apart are put together again for each tile of
/// rows.
double line_cycles(const Convolution& convolution, const TileShape& tile) {
  const ContractionSize size = size_of_lines(convolution);
  const int64_t row_tiles = (size.rows + tile.rows - 1) / tile.rows;
  const double apart = convolution.is_apart ? static_cast<double>(row_tiles * size.steps) *
                                                  static_cast<double>(size.columns) *
                                                  convolution.machine.apart_cycles
                                            : 0;
  return tile_cycles(size, tile) + apart;
}

void write_lines(const StageGraph& graph, const Convolution& convolution, StepWriter& steps,
                 const Values& values) {
  const Tiling& tiling = convolution.tiling;
  const Image& image = convolution.image;
  const StageId id = tiling.stage;
  const auto [rows, row, columns, column] = split_tiles(graph, tiling, steps, values, "lanes");
  const auto [blocks, line] = split_tile(graph, steps, id, image.line, values.get("lines", 1));
  std::vector<AxisId> outer = tiling.batch;
  std::erase(outer, image.line);
  outer.push_back(blocks);
  steps.reorder(id, joined({outer, {line, columns, rows}, tiling.reduce, {row, column}}));
  place_lines(graph, convolution, id, id, blocks, steps);
  steps.vectorize(id, column);
  unroll_window(graph, tiling, id, tiling.reduce, steps, registers_of_tile(tiling, values));
  steps.unroll(id, row);
  if (values.get("parallel", 0) == 0) return;
  for (const AxisId loop : outer)
    steps.parallel(id, loop);
}

}  // namespace

double lines_cycles(const Convolution& convolution) {
  const double line = line_cycles(convolution, best_tile(size_of_lines(convolution)));
  const int64_t lines = lines_of_block(convolution, line);
  return static_cast<double>(convolution.image.lines) *
         (line + copy_cycles(convolution, lines) / static_cast<double>(lines));
}

Sketch lines_sketch(const StageGraph& graph, const Convolution& convolution, bool parallel) {
  const ContractionSize size = size_of_lines(convolution);
  const Contraction& contraction = convolution.tiling.contraction;
  const TileShape tile = best_tile(size);
  const int64_t lines = lines_of_block(convolution, line_cycles(convolution, tile));
  return {
      .name = "blocks of lines",
      .parameters = {rows_parameter(graph, contraction.row, tile.rows),
                     columns_parameter(graph, contraction.column, size.register_lanes, tile.lanes),
                     lines_parameter(convolution, lines), parallel_parameter(parallel)},
      .write = [&graph, convolution](StepWriter& steps, const Values& values) {
        write_lines(graph, convolution, steps, values);
      }};
}

}  // namespace kiln::autoschedule
