#include <algorithm>

#include "compiler/autoschedule/convolution.h"

namespace kiln::autoschedule {
namespace {

// A block of lines of the image stays in the second cache while all rows pass.
constexpr int64_t kBlockElements = 128 * 1024;
// Cycles for an element that is copied with its line.
constexpr double kCopyCycles = 0.5;
// And for one that is not next to the others of its vector.
constexpr double kApartCycles = 0.2;
constexpr int64_t kTasks = 8;

/// What a core does for a line, and what its copy adds. Columns that are apart are put
/// together again for each tile of rows.
double line_cycles(const Convolution& convolution, const TileShape& tile, int64_t lines) {
  const Image& image = convolution.image;
  const ContractionSize& size = convolution.numbers.size;
  const auto copied = static_cast<double>((lines - 1) * image.stride + image.reach + 1);
  const double copy =
      copied * static_cast<double>(image.line_elements) * kCopyCycles / static_cast<double>(lines);
  const int64_t row_tiles = (size.rows + tile.rows - 1) / tile.rows;
  const double apart = convolution.is_apart ? static_cast<double>(row_tiles * size.steps) *
                                                  static_cast<double>(size.columns) * kApartCycles
                                            : 0;
  return tile_cycles(size, tile) + copy + apart;
}

/// How many lines of the result are a block: few copied twice, and as much for each core to do.
int64_t lines_of_block(const Convolution& convolution, const TileShape& tile) {
  const Image& image = convolution.image;
  int64_t best = 1;
  double least = 0;
  for (int64_t lines = 1; lines <= image.lines; ++lines) {
    const int64_t copied = (lines - 1) * image.stride + image.reach + 1;
    const int64_t blocks = (image.lines + lines - 1) / lines;
    const int64_t tasks = blocks * std::min(image.images, kTasks);
    if (lines > 1 && (copied * image.line_elements > kBlockElements || tasks < kTasks)) break;
    const double time = static_cast<double>(blocks * lines) *
                        line_cycles(convolution, tile, lines) * imbalance(tasks);
    if (lines > 1 && time >= least) continue;
    least = time;
    best = lines;
  }
  return best;
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
  if (image.is_computed_for) {
    steps.compute_at(image.source.stage, id, blocks);
    const AxisId last = graph[image.source.stage].data.back();
    const auto lanes = line_factor(graph, image.source.stage, last);
    if (lanes)
      steps.vectorize(image.source.stage, steps.split(image.source.stage, last, *lanes).second);
  } else {
    const size_t dimensions = tiling.contraction.column_factor->indices.size();
    const auto [copy, axes] = steps.cache_read(image.source, dimensions, id);
    steps.compute_at(copy, id, blocks);
    const auto [tiles, lane] = steps.split(copy, axes.back(), convolution.copied_lanes);
    steps.vectorize(copy, lane);
  }
  steps.vectorize(id, column);
  write_out_window(graph, convolution, id, tiling.reduce, steps, values);
  steps.unroll(id, row);
  if (values.get("parallel", 0) == 0) return;
  for (const AxisId loop : outer)
    steps.parallel(id, loop);
}

}  // namespace

double lines_cycles(const Convolution& convolution) {
  const TileShape tile = best_tile(convolution.numbers.size);
  const int64_t lines = lines_of_block(convolution, tile);
  return static_cast<double>(convolution.image.lines) * line_cycles(convolution, tile, lines);
}

Sketch lines_sketch(const StageGraph& graph, const Convolution& convolution, bool parallel) {
  const ContractionSize& size = convolution.numbers.size;
  const Contraction& contraction = convolution.tiling.contraction;
  const TileShape tile = best_tile(size);
  const int64_t lines = lines_of_block(convolution, tile);
  return {
      .name = "blocks of lines",
      .parameters = {rows_parameter(graph, contraction.row, tile.rows),
                     columns_parameter(graph, contraction.column, size.register_lanes, tile.lanes),
                     sorted_parameter("lines", {1, 2, 4, 7, 8, 14, 16, 28, 32},
                                      convolution.image.lines, lines),
                     parallel_parameter(parallel)},
      .write = [&graph, convolution](StepWriter& steps, const Values& values) {
        write_lines(graph, convolution, steps, values);
      }};
}

}  // namespace kiln::autoschedule
