#include "compiler/autoschedule/image_sketches.h"

#include <algorithm>

#include "compiler/analysis/prove.h"
#include "compiler/autoschedule/contraction_numbers.h"
#include "compiler/ir/build.h"

namespace kiln::autoschedule {
namespace {

// A block of lines of the image stays in the second cache while all rows pass.
constexpr int64_t kBlockElements = 128 * 1024;
// Cycles for an element that is copied with its line, and for one gathered into a patch.
constexpr double kCopyCycles = 0.5;
constexpr double kGatherCycles = 1.2;
// The same where all patches are more than the second cache holds.
constexpr double kFarCycles = 5;
constexpr double kNearPatches = 512 * 1024;
// And for one that is not next to the others of its vector.
constexpr double kApartCycles = 0.2;
constexpr int64_t kTasks = 8;
// Cycles of a step for a vector of columns, of which the steps of a window read much the same, and
// for an element of a row, of which there are as many streams.
constexpr double kVectorCycles = 0.2;
constexpr double kRowCycles = 0.1;
// A window of one element gains by a copy if so many tiles of rows read it and it is large.
constexpr int64_t kReaders = 4;
constexpr int64_t kFarElements = 16 * 1024;
// Multiply-adds that may stand in a loop, once its inner loops over the window are written out.
constexpr int64_t kWrittenOut = 216;

struct Convolution {
  Tiling tiling;
  Image image;
  Numbers numbers;
  int64_t copied_lanes = 1;
  bool is_apart = false;  // columns of the result are no neighbours in the image
};

std::optional<Convolution> find_convolution(const Chooser& chooser, StageId id) {
  const StageGraph& graph = chooser.graph;
  if (!is_free(graph, id)) return std::nullopt;
  const std::optional<Contraction> contraction = find_contraction(graph, id);
  if (!contraction || constant_extent(graph, contraction->row).value_or(1) == 1) {
    return std::nullopt;
  }
  const std::optional<Image> image = find_image(graph, id, *contraction);
  if (!image) return std::nullopt;
  Tiling tiling = tiling_of(graph, id, *contraction);
  Numbers numbers = numbers_of(chooser, tiling, /*parallel=*/false);
  if (numbers.size.rows == 0 || numbers.size.columns == 0 || numbers.panels == 0) {
    return std::nullopt;
  }
  const bool is_apart = !is_contiguous_in(graph, *contraction->column_factor, contraction->column);
  if (!is_apart) numbers.size.row_cycles = kRowCycles;
  if (!is_apart && image->reach > 0) numbers.size.vector_cycles = kVectorCycles;
  const bool is_read_often = numbers.size.rows >= kReaders * best_tile(numbers.size).rows;
  if (image->reach == 0 && (!is_read_often || image->line_elements * image->lines < kFarElements)) {
    return std::nullopt;
  }
  const std::vector<ir::Expr>& shape = graph[image->source.stage].shapes[image->source.output];
  const int64_t last = ir::as_const_int(analysis::simplify(shape.back())).value_or(1);
  int64_t lanes = 2 * numbers.size.register_lanes;
  while (lanes > last)
    lanes /= 2;
  return Convolution{std::move(tiling), *image, numbers, lanes, is_apart};
}

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

/// Steps of a window are few: as loops they would end as soon as they have begun. `reduce`: the
/// loops of the stage for the axes of the reduction.
void write_out_window(const StageGraph& graph, const Convolution& convolution, StageId stage,
                      const std::vector<AxisId>& reduce, StepWriter& steps, const Values& values) {
  const int64_t lanes = convolution.numbers.size.register_lanes;
  int64_t sums = values.get("rows", 1) * ((values.get("lanes", 1) + lanes - 1) / lanes);
  for (size_t i = reduce.size(); i-- > 1;) {
    const std::optional<int64_t> extent = constant_extent(graph, convolution.tiling.reduce[i]);
    if (!extent || *extent > kWrittenOut || sums * *extent > kWrittenOut) return;
    sums *= *extent;
    if (*extent > 1) steps.unroll(stage, reduce[i]);
  }
}

/// Tiles as of outer products, of one block of lines after the other, for which the lines of the
/// image are copied or padded first: they lie close together then, and only this core reads them.
void write_lines(const StageGraph& graph, const Convolution& convolution, StepWriter& steps,
                 const Values& values) {
  const Tiling& tiling = convolution.tiling;
  const Image& image = convolution.image;
  const StageId id = tiling.stage;
  const auto [rows, row] =
      split_tile(graph, steps, id, tiling.contraction.row, values.get("rows", 1));
  const auto [columns, column] =
      split_tile(graph, steps, id, tiling.contraction.column, values.get("lanes", 1));
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

/// An image in one row: all its elements are columns, and their patches are laid out in the order
/// in which tiles read them. The result is turned into lines at the end.
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
  write_out_window(graph, convolution, sums, reduce, steps, values);
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

bool may_have_patches(const StageGraph& graph, const Convolution& convolution) {
  const std::vector<AxisId> data = columns_of(graph[convolution.tiling.stage]);
  return data[data.size() - 2] == convolution.image.line;
}

/// About how many cycles they take for one image.
double patches_cycles(const Convolution& convolution) {
  const ContractionSize size = patches_size(convolution);
  const double gathered = static_cast<double>(size.steps) * static_cast<double>(size.columns);
  const double each = gathered > kNearPatches ? kFarCycles : kGatherCycles;
  return tile_cycles(size, best_tile(size)) + each * gathered;
}

Parameter sorted_parameter(std::string name, std::vector<int64_t> values, int64_t most,
                           int64_t preferred) {
  std::erase_if(values, [&](int64_t value) { return value > most || value == preferred; });
  values.insert(std::ranges::lower_bound(values, preferred), preferred);
  return {std::move(name), std::move(values), preferred};
}

template <typename Write>
Sketch sketch_of(const StageGraph& graph, const Convolution& convolution, std::string name,
                 std::vector<Parameter> parameters, Write write) {
  return {.name = std::move(name),
          .parameters = std::move(parameters),
          .write = [&graph, convolution, write](StepWriter& steps, const Values& values) {
            write(graph, convolution, steps, values);
          }};
}

Sketch lines_sketch(const StageGraph& graph, const Convolution& convolution, bool parallel) {
  const ContractionSize& size = convolution.numbers.size;
  const Contraction& contraction = convolution.tiling.contraction;
  const TileShape tile = best_tile(size);
  const int64_t lines = lines_of_block(convolution, tile);
  return sketch_of(
      graph, convolution, "blocks of lines",
      {rows_parameter(graph, contraction.row, tile.rows),
       columns_parameter(graph, contraction.column, size.register_lanes, tile.lanes),
       sorted_parameter("lines", {1, 2, 4, 7, 8, 14, 16, 28, 32}, convolution.image.lines, lines),
       parallel_parameter(parallel)},
      write_lines);
}

Sketch patches_sketch(const StageGraph& graph, const Convolution& convolution, bool parallel) {
  const ContractionSize size = patches_size(convolution);
  const TileShape tile = best_tile(size);
  const int64_t lanes = size.register_lanes;
  return sketch_of(graph, convolution, "patches in order",
                   {rows_parameter(graph, convolution.tiling.contraction.row, tile.rows),
                    sorted_parameter("lanes", {lanes, 2 * lanes, 3 * lanes, 4 * lanes},
                                     size.columns, tile.lanes),
                    parallel_parameter(parallel)},
                   write_patches);
}

/// The same with the steps of another stage in front, which is computed first and whole.
Sketch after(const Sketch& first, Sketch sketch) {
  sketch.write = [first, write = sketch.write](StepWriter& steps, const Values& values) {
    const std::vector<int64_t> preferred = first.preferred();
    first.write(steps, Values(first.parameters, preferred));
    write(steps, values);
  };
  return sketch;
}

}  // namespace

std::optional<StageId> taken_source(const Chooser& chooser, StageId id) {
  const std::optional<Convolution> convolution = find_convolution(chooser, id);
  if (!convolution || !convolution->image.is_computed_for) return std::nullopt;
  return convolution->image.source.stage;
}

std::vector<Sketch> with_image_sketches(const Chooser& chooser, StageId id,
                                        std::vector<Sketch> sketches) {
  const StageGraph& graph = chooser.graph;
  const std::optional<Convolution> convolution = find_convolution(chooser, id);
  if (!convolution) return sketches;
  const bool parallel = is_large(graph, id);
  std::vector<Sketch> whole = std::move(sketches);
  bool patches_first = false;
  if (may_have_patches(graph, *convolution)) {
    const TileShape tile = best_tile(convolution->numbers.size);
    const int64_t lines = lines_of_block(*convolution, tile);
    patches_first = patches_cycles(*convolution) < static_cast<double>(convolution->image.lines) *
                                                       line_cycles(*convolution, tile, lines);
    whole.insert(patches_first ? whole.begin() : whole.end(),
                 patches_sketch(graph, *convolution, parallel));
  }
  if (convolution->image.is_computed_for) {
    const std::vector<Sketch> source =
        compute_sketches(chooser, convolution->image.source.stage, /*may_be_parallel=*/true);
    if (!source.empty()) {
      for (Sketch& sketch : whole)
        sketch = after(source[0], std::move(sketch));
    }
  }
  whole.insert(patches_first ? whole.begin() + 1 : whole.begin(),
               lines_sketch(graph, *convolution, parallel));
  return whole;
}

}  // namespace kiln::autoschedule
