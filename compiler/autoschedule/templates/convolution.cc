// Decides whether a contraction is a convolution, which its indices say and not its name: along the
// columns a window slides over the lines of one factor.
//
//   Y[f, y, x] = sum[c, r, s](X[c, y + r, x + s] * W[f, c, r, s])     image X, filters W
//
// Also the numbers that the four sketches of one share: lines of a block, what copying them costs.
// Of direct convolution in blocks see Georganas et al., Anatomy of High-Performance Deep Learning
// Convolutions, SC 2018.
#include "compiler/autoschedule/templates/convolution.h"

#include <algorithm>

#include "compiler/analysis/prove.h"
#include "compiler/autoschedule/templates/transfers.h"
#include "compiler/ir/build.h"
#include "runtime/core/cpu_name.h"

namespace kiln::autoschedule {
namespace {

// What a step of a window holds up a core, in parts of what a line from L2 does: of three columns
// of a window two were read by the steps before; and an element of a row is one of a stream each.
constexpr double kVectorOfWindow = 1.0 / 3;
constexpr double kRowOfStreams = 1.0 / 6;
// Of tiles that take as long, the one that loads less is faster, as of a product (product_cost.cc).
constexpr double kLoadPart = 0.05;
// A window of one element gains by a copy if so many tiles of rows read it and L1 does not hold it.
constexpr int64_t kReaders = 4;
// A block of lines of the image takes a quarter of L2 while all rows pass, which has their filters
// and results, too.
constexpr int64_t kBlocksOfL2 = 4;
// Three for each of a few cores: nobody waits long for the last one.
constexpr int64_t kTasks = 3 * kFewCores;
constexpr double kLineBytes = Transfers::kLineBytes;

}  // namespace

std::optional<Convolution> find_convolution(const Chooser& chooser, StageId id) {
  const StageGraph& graph = chooser.graph;
  if (!is_free(graph, id)) return std::nullopt;
  const std::optional<Contraction> contraction = find_contraction(graph, id);
  if (!contraction || constant_extent(graph, contraction->row).value_or(1) == 1) {
    return std::nullopt;
  }
  const std::optional<Image> image = find_image(graph, id, *contraction);
  if (!image) return std::nullopt;
  Tiling tiling = tiling_of(chooser, id, *contraction);
  // Its packed panels are better than lines whose products are widened one by one.
  if (tiling.group.products > 1) return std::nullopt;
  Numbers numbers = numbers_of(chooser, tiling, /*parallel=*/false);
  if (numbers.size.rows == 0 || numbers.size.columns == 0 || numbers.panels == 0) {
    return std::nullopt;
  }
  const bool is_apart = !is_contiguous_in(graph, *contraction->column_factor, contraction->column);
  const double held = chooser.machine.held_cycles;
  numbers.size.loop_cycles = chooser.machine.loop_cycles;
  numbers.size.load_part = kLoadPart;
  numbers.size.vector_cycles = held * (!is_apart && image->reach > 0 ? kVectorOfWindow : 1);
  if (!is_apart) numbers.size.row_cycles = held * kRowOfStreams;
  const bool is_read_often = numbers.size.rows >= kReaders * best_tile(numbers.size).rows;
  const bool is_near = image->line_elements * image->lines < numbers.size.l1_elements;
  if (image->reach == 0 && (!is_read_often || is_near)) return std::nullopt;
  const std::vector<ir::Expr>& shape = graph[image->source.stage].shapes[image->source.output];
  const int64_t last = ir::as_const_int(analysis::simplify(shape.back())).value_or(1);
  // Copies are vectors of two registers, or shorter for lines that are no longer than that.
  int64_t lanes = 2 * numbers.size.register_lanes;
  while (lanes > last)
    lanes /= 2;
  const auto element_bytes = static_cast<double>(size_of(graph[id].types[0]));
  return Convolution{.tiling = std::move(tiling),
                     .image = *image,
                     .numbers = numbers,
                     .machine = chooser.machine,
                     .element_bytes = element_bytes,
                     .copied_lanes = lanes,
                     .is_apart = is_apart,
                     .patch_group = patch_group_of(chooser, id, *contraction)};
}

double copy_cycles(const Convolution& convolution, int64_t lines) {
  const Image& image = convolution.image;
  const int64_t copied = (lines - 1) * image.stride + image.reach + 1;
  return static_cast<double>(copied * image.line_elements) * copied_element_cycles(convolution);
}

double copied_element_cycles(const Convolution& convolution) {
  return convolution.machine.copied_line_cycles * convolution.element_bytes / kLineBytes;
}

int64_t lines_of_block(const Convolution& convolution, double line_cycles) {
  const Image& image = convolution.image;
  const ContractionSize& size = convolution.numbers.size;
  const int64_t least_tasks = std::max(kTasks, size.block_tasks);
  const int64_t most = size.l2_elements / kBlocksOfL2;
  int64_t best = 1;
  double least = 0;
  for (int64_t lines = 1; lines <= image.lines; ++lines) {
    const int64_t copied = (lines - 1) * image.stride + image.reach + 1;
    const int64_t blocks = (image.lines + lines - 1) / lines;
    const int64_t tasks = blocks * std::min(image.images, least_tasks);
    // More lines only make both worse, so the search ends here.
    if (lines > 1 && (copied * image.line_elements > most || tasks < least_tasks)) break;
    const double block = static_cast<double>(lines) * line_cycles + copy_cycles(convolution, lines);
    const double time = static_cast<double>(blocks) * block * imbalance(tasks, size.cores);
    if (lines > 1 && time >= least) continue;
    least = time;
    best = lines;
  }
  return best;
}

Parameter lines_parameter(const Convolution& convolution, int64_t preferred) {
  return sorted_parameter("lines", {1, 2, 4, 7, 8, 14, 16, 28, 32}, convolution.image.lines,
                          preferred);
}

ContractionSize size_in_one_line(const Convolution& convolution) {
  ContractionSize size = convolution.numbers.size;
  size.columns *= convolution.image.lines;
  return size;
}

std::vector<Parameter> one_line_parameters(const StageGraph& graph, const Convolution& convolution,
                                           const ContractionSize& size, bool parallel) {
  const TileShape tile = best_tile(size);
  const int64_t lanes = size.register_lanes;
  return {
      rows_parameter(graph, convolution.tiling.contraction.row, tile.rows),
      sorted_parameter("lanes", {lanes, 2 * lanes, 3 * lanes, 4 * lanes}, size.columns, tile.lanes),
      parallel_parameter(parallel)};
}

void pad_at(const StageGraph& graph, const Convolution& convolution, StageId reader, AxisId loop,
            StepWriter& steps) {
  const StageId source = convolution.image.source.stage;
  steps.compute_at(source, reader, loop);
  const AxisId last = graph[source].data.back();
  const auto lanes = line_factor(graph, source, {last});
  if (lanes) steps.vectorize(source, steps.split(source, last, *lanes).second);
}

void place_lines(const StageGraph& graph, const Convolution& convolution, StageId reader,
                 StageId id, AxisId blocks, StepWriter& steps) {
  if (convolution.image.is_computed_for) return pad_at(graph, convolution, id, blocks, steps);
  const auto [copy, axes] = steps.cache_read(convolution.image.source, reader, {});
  steps.compute_at(copy, id, blocks);
  const auto [tiles, lane] = steps.split(copy, axes.back(), convolution.copied_lanes);
  steps.vectorize(copy, lane);
}

Parameter sorted_parameter(std::string name, std::vector<int64_t> values, int64_t most,
                           int64_t preferred) {
  std::erase_if(values, [&](int64_t value) { return value > most || value == preferred; });
  values.insert(std::ranges::lower_bound(values, preferred), preferred);
  return {std::move(name), std::move(values), preferred};
}

}  // namespace kiln::autoschedule
