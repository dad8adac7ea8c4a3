#include <algorithm>

#include "compiler/autoschedule/convolution.h"

namespace kiln::autoschedule {
namespace {

// Cycles for an element that is gathered into a patch, and where all patches are more than the
// second cache holds.
constexpr double kGatherCycles = 1.2;
constexpr double kFarCycles = 5;
constexpr double kNearPatches = 512 * 1024;

void write_patches(const StageGraph& graph, const Convolution& convolution, StepWriter& steps,
                   const Values& values) {
  const Tiling& tiling = convolution.tiling;
  const StageId id = tiling.stage;
  steps.fuse(id, {convolution.image.line, tiling.contraction.column});
  std::vector<AxisId> loops = columns_of(graph[id]);
  std::erase(loops, convolution.image.line);
  const auto made = steps.cache_write(id, "global", loops.size() + tiling.reduce.size());
  const StageId sums = made.first;
  const std::vector<AxisId>& axes = made.second;
  const auto place_of = [&](AxisId axis) {
    return axes[static_cast<size_t>(std::ranges::find(loops, axis) - loops.begin())];
  };
  const std::vector<AxisId> reduce(axes.begin() + static_cast<std::ptrdiff_t>(loops.size()),
                                   axes.end());
  std::vector<AxisId> batch;
  std::vector<AxisId> panel_batch;
  for (const AxisId axis : tiling.batch) {
    if (axis == convolution.image.line) continue;
    batch.push_back(place_of(axis));
    if (is_used_in(graph, *tiling.contraction.column_factor, axis)) {
      panel_batch.push_back(place_of(axis));
    }
  }
  const auto [rows, row] =
      steps.split(sums, place_of(tiling.contraction.row), values.get("rows", 1));
  const auto [columns, column] =
      steps.split(sums, place_of(tiling.contraction.column), values.get("lanes", 1));
  steps.reorder(sums, joined({batch, {rows, columns}, reduce, {row, column}}));
  const auto [copy, places] =
      steps.cache_read(tiling.panel, sums, joined({panel_batch, {columns}, reduce, {column}}));
  steps.vectorize(sums, column);
  write_out_window(graph, convolution, sums, reduce, steps, registers_of_tile(convolution, values));
  steps.unroll(sums, row);
  const AxisId panels = places[panel_batch.size()];
  const AxisId channels = places[panel_batch.size() + 1];
  steps.reorder(copy, {channels, panels});
  steps.vectorize(copy, places.back());
  if (values.get("parallel", 0) == 0) return;
  for (const AxisId loop : joined({batch, {rows}}))
    steps.parallel(sums, loop);
  for (size_t i = 0; i < panel_batch.size(); ++i)
    steps.parallel(copy, places[i]);
  steps.parallel(copy, channels);
  std::vector<AxisId> images = tiling.batch;
  std::erase(images, convolution.image.line);
  parallel_outer(graph, steps, id, joined({images, {tiling.contraction.row}}));
}

/// The patches of an image side by side are one line.
ContractionSize patches_size(const Convolution& convolution) {
  ContractionSize size = convolution.numbers.size;
  size.columns *= convolution.image.lines;
  return size;
}

}  // namespace

bool may_have_patches(const StageGraph& graph, const Convolution& convolution) {
  const std::vector<AxisId> data = columns_of(graph[convolution.tiling.stage]);
  return data[data.size() - 2] == convolution.image.line;
}

double patches_cycles(const Convolution& convolution) {
  const ContractionSize size = patches_size(convolution);
  const double gathered = static_cast<double>(size.steps) * static_cast<double>(size.columns);
  const double each = gathered > kNearPatches ? kFarCycles : kGatherCycles;
  return tile_cycles(size, best_tile(size)) + each * gathered;
}

Sketch patches_sketch(const StageGraph& graph, const Convolution& convolution, bool parallel) {
  const ContractionSize size = patches_size(convolution);
  const TileShape tile = best_tile(size);
  const int64_t lanes = size.register_lanes;
  return {.name = "patches in order",
          .parameters = {rows_parameter(graph, convolution.tiling.contraction.row, tile.rows),
                         sorted_parameter("lanes", {lanes, 2 * lanes, 3 * lanes, 4 * lanes},
                                          size.columns, tile.lanes),
                         parallel_parameter(parallel)},
          .write = [&graph, convolution](StepWriter& steps, const Values& values) {
            write_patches(graph, convolution, steps, values);
          }};
}

}  // namespace kiln::autoschedule
