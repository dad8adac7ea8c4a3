// A convolution whose vectors are channels of the result, as in the blocked layouts of oneDNN
// (nChw16c), without their layout in memory: filters are packed so that channels are neighbours,
// each element of the image is broadcast, and a tile of the result is transposed on its way out.
//
//   tile: 2 vectors of channels x 8 columns; filters [f / 32][c][r][s][32]
#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/analysis/prove.h"
#include "compiler/autoschedule/templates/filter_panels.h"
#include "compiler/ir/build.h"

namespace kiln::autoschedule {
namespace {

// Of a step beside its sums, in parts of what an element costs that is spread: the filters of it.
constexpr double kStepOfSpread = 0.85;
// Vectors of channels: each element that is broadcast serves two multiply-adds, one for each port.
constexpr int64_t kVectors = 2;
// What tiles must gain to be worth other code for the end of a line.
constexpr double kRagged = 1.03;

int64_t vectors_of(const ContractionSize& size) {
  return size.rows > size.register_lanes ? kVectors : 1;
}

double one_tile(const Convolution& convolution, int64_t columns, int64_t vectors) {
  if (columns == 0) return 0;
  const Image& image = convolution.image;
  const ContractionSize& size = convolution.numbers.size;
  // A window is about as wide as it is high; what its steps read is the same but for the ends.
  const auto window = static_cast<double>(image.reach + 1);
  const double span = static_cast<double>((columns - 1) * image.stride) + window;
  const double spread = std::min(span / window, static_cast<double>(columns));
  const auto sums = static_cast<double>(columns * vectors);
  const Machine& machine = convolution.machine;
  // The ports of multiply-adds, or the chain of a single sum.
  const double step = std::max(sums / size.multiply_adds, size.latency) +
                      (kStepOfSpread + spread) * machine.spread_cycles;
  const double transposed = sums * static_cast<double>(size.register_lanes) * machine.turned_cycles;
  return static_cast<double>(size.steps) * step + machine.tile_cycles + transposed;
}

/// About how many cycles a line takes in tiles of so many columns.
double line_cycles(const Convolution& convolution, int64_t columns) {
  const ContractionSize& size = convolution.numbers.size;
  const int64_t vectors = vectors_of(size);
  const int64_t lanes = vectors * size.register_lanes;
  const int64_t panels = (size.rows + lanes - 1) / lanes;
  const int64_t tiles = size.columns / columns;
  return static_cast<double>(panels) *
         (static_cast<double>(tiles) * one_tile(convolution, columns, vectors) +
          one_tile(convolution, size.columns % columns, vectors));
}

/// With more columns, what the steps of a window share no longer stays in registers beside sums;
/// but with fewer sums than are under way at once each would wait for the one before.
int64_t most_columns(const Convolution& convolution) {
  const ContractionSize& size = convolution.numbers.size;
  const int64_t vectors = vectors_of(size);
  // Registers a column: its sums, and the new elements of the window that it brings.
  const int64_t each = vectors + convolution.image.stride;
  const double under_way = size.latency * size.multiply_adds / static_cast<double>(vectors);
  const auto fewest = static_cast<int64_t>(std::ceil(under_way));
  return std::clamp<int64_t>(std::max((size.registers - vectors) / each, fewest), 1, size.columns);
}

/// Those that take the fewest cycles; of about as good ones those that fill each line, since what
/// is left of a line is as much code as a tile.
int64_t best_columns(const Convolution& convolution) {
  const int64_t all = convolution.numbers.size.columns;
  int64_t best = 1;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t columns = 1; columns <= most_columns(convolution); ++columns) {
    const double cycles = line_cycles(convolution, columns) * (all % columns == 0 ? 1 : kRagged);
    if (cycles >= least) continue;
    least = cycles;
    best = columns;
  }
  return best;
}

/// The result in its own order: a block of lines after the other, for all channels.
void write_transposed(const StageGraph& graph, const Convolution& convolution, StepWriter& steps,
                      StageId sums, const std::vector<AxisId>& outer, const Values& values) {
  const Tiling& tiling = convolution.tiling;
  const StageId id = tiling.stage;
  const auto [panels, channel] =
      split_tile(graph, steps, id, tiling.contraction.row, values.get("channels", 1));
  const auto [blocks, line] =
      split_tile(graph, steps, id, convolution.image.line, values.get("lines", 1));
  const AxisId column = tiling.contraction.column;
  steps.reorder(id, joined({outer, {blocks, panels, line, channel, column}}));
  steps.vectorize(id, column);
  if (values.get("parallel", 0) != 0) {
    for (const AxisId axis : joined({outer, {blocks}}))
      steps.parallel(id, axis);
  }
  place_lines(graph, convolution, sums, id, blocks, steps);
  steps.compute_at(sums, id, line);
}

/// Whether a filter lies in memory as it is summed, in whole vectors.
bool lies_as_summed(const StageGraph& graph, const Convolution& convolution) {
  const ir::TensorRead& read = *convolution.tiling.contraction.row_factor;
  const std::vector<AxisId>& sum = graph[convolution.tiling.stage].reduce;
  const std::vector<ir::Expr>& shape = graph[read.stage].shapes[read.output];
  if (read.indices.size() <= sum.size()) return false;
  const size_t first = read.indices.size() - sum.size();
  for (size_t i = 0; i < sum.size(); ++i) {
    const std::optional<int64_t> extent = ir::as_const_int(analysis::simplify(shape[first + i]));
    if (read.indices[first + i] != ir::Expr(graph.axes[sum[i]].value) || !extent ||
        extent != constant_extent(graph, sum[i])) {
      return false;
    }
  }
  return convolution.numbers.size.steps % convolution.numbers.size.register_lanes == 0;
}

/// The copy of the filters: squares of so many channels and steps as a vector has lanes are read
/// along the filters and transposed in registers; else each vector gathers its channels.
void write_filters(const StageGraph& graph, const Convolution& convolution, StepWriter& steps,
                   StageId copy, const std::vector<AxisId>& places, const Values& values) {
  const ContractionSize& size = convolution.numbers.size;
  const int64_t lanes = size.register_lanes;
  const size_t batch = convolution.tiling.row_batch.size();
  std::vector<AxisId> outer(places.begin(),
                            places.begin() + static_cast<std::ptrdiff_t>(batch) + 1);
  const bool is_square = lanes <= kMostLanesOfSquare && size.rows % values.get("channels", 1) == 0;
  if (is_square && lies_as_summed(graph, convolution)) {
    const std::vector<AxisId> sum(places.begin() + static_cast<std::ptrdiff_t>(batch) + 1,
                                  places.end() - 1);
    const auto [chunks, chunk] = steps.split(copy, steps.fuse(copy, sum), lanes);
    const auto [groups, channel] = steps.split(copy, places.back(), lanes);
    outer.push_back(chunks);
    steps.reorder(copy, joined({outer, {groups, channel, chunk}}));
    steps.unroll(copy, channel);
    steps.vectorize(copy, chunk);
  } else {
    outer.push_back(places[batch + 1]);
    steps.vectorize(copy, places.back());
  }
  if (values.get("parallel", 0) == 0) return;
  for (const AxisId axis : outer)
    steps.parallel(copy, axis);
}

void write_channels(const StageGraph& graph, const Convolution& convolution, StepWriter& steps,
                    const Values& values) {
  const Tiling& tiling = convolution.tiling;
  const StageId id = tiling.stage;
  const int64_t lanes = convolution.numbers.size.register_lanes;
  const auto [panels, channel] =
      split_tile(graph, steps, id, tiling.contraction.row, values.get("channels", 1));
  std::vector<AxisId> outer = tiling.batch;
  std::erase(outer, convolution.image.line);
  const std::vector<AxisId> loops =
      joined({outer, {panels, convolution.image.line, tiling.contraction.column, channel}});
  steps.reorder(id, loops);
  const auto made = steps.cache_write(id, "global");
  const StageId sums = made.first;
  const std::vector<AxisId>& axes = made.second;
  const auto of = [&](AxisId axis) {
    return axes[static_cast<size_t>(std::ranges::find(loops, axis) - loops.begin())];
  };
  const auto all_of = [&](std::vector<AxisId> list) {
    std::ranges::transform(list, list.begin(), of);
    return list;
  };
  const std::vector<AxisId> reduce(axes.begin() + static_cast<std::ptrdiff_t>(loops.size()),
                                   axes.end());
  const int64_t columns = values.get("columns", 1);
  const auto [tiles, column] = steps.split(sums, of(tiling.contraction.column), columns);
  steps.reorder(sums, joined({all_of(outer),
                              {of(panels), of(convolution.image.line), tiles},
                              reduce,
                              {column, of(channel)}}));
  if (!channels_of_panels(graph, convolution)) {
    const auto [filters, places] = steps.cache_read(
        tiling.rows, sums, joined({all_of(tiling.row_batch), {of(panels)}, reduce, {of(channel)}}));
    write_filters(graph, convolution, steps, filters, places, values);
  }
  steps.vectorize(sums, of(channel));
  const int64_t vectors = (values.get("channels", 1) + lanes - 1) / lanes;
  unroll_window(graph, convolution.tiling, sums, reduce, steps, columns * vectors);
  steps.unroll(sums, column);
  write_transposed(graph, convolution, steps, sums, outer, values);
}

int64_t block_of(const Convolution& convolution, int64_t columns) {
  return lines_of_block(convolution, line_cycles(convolution, columns));
}

Parameter channels_parameter(const StageGraph& graph, const Convolution& convolution) {
  if (const std::optional<int64_t> given = channels_of_panels(graph, convolution))
    return {"channels", {*given}, *given};
  const int64_t lanes = convolution.numbers.size.register_lanes;
  return tile_parameter(graph, "channels", convolution.tiling.contraction.row,
                        {lanes, 2 * lanes, 4 * lanes}, channels_of_vectors(convolution));
}

}  // namespace

bool may_have_channels(const StageGraph& graph, const Convolution& convolution) {
  const Tiling& tiling = convolution.tiling;
  const Contraction& contraction = tiling.contraction;
  const ContractionSize& size = convolution.numbers.size;
  return size.rows >= size.register_lanes &&
         (only_reorders(graph, *contraction.row_factor,
                        joined({tiling.row_batch, tiling.reduce, {contraction.row}})) ||
          channels_of_panels(graph, convolution));
}

int64_t channels_of_vectors(const Convolution& convolution) {
  const ContractionSize& size = convolution.numbers.size;
  return vectors_of(size) * size.register_lanes;
}

double channels_cycles(const Convolution& convolution, bool copies_filters) {
  const ContractionSize& size = convolution.numbers.size;
  const Image& image = convolution.image;
  const int64_t columns = best_columns(convolution);
  const int64_t lines = block_of(convolution, columns);
  const double line = line_cycles(convolution, columns) +
                      copy_cycles(convolution, lines) / static_cast<double>(lines);
  const auto filters = static_cast<double>(size.rows * size.steps);
  // Beside what they are copied to.
  const bool is_far = filters > static_cast<double>(size.l2_elements) / 2;
  const double each =
      is_far ? convolution.machine.far_filter_cycles : convolution.machine.filter_cycles;
  const double pack = copies_filters ? filters * each : 0;
  return static_cast<double>(image.lines) * line + pack / static_cast<double>(image.images);
}

Sketch channels_sketch(const StageGraph& graph, const Convolution& convolution, bool parallel) {
  const ContractionSize& size = convolution.numbers.size;
  const int64_t columns = best_columns(convolution);
  return {.name = "vectors of channels",
          .parameters = {channels_parameter(graph, convolution),
                         sorted_parameter("columns", {4, 6, 7, 8, 10, 12}, size.columns, columns),
                         lines_parameter(convolution, block_of(convolution, columns)),
                         parallel_parameter(parallel)},
          .write = [&graph, convolution](StepWriter& steps, const Values& values) {
            write_channels(graph, convolution, steps, values);
          }};
}

}  // namespace kiln::autoschedule
