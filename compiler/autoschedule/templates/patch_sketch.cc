// A convolution as a matrix product over patches (im2col), whose image is one row of columns: for
// images of few columns, where lines would leave most lanes of a vector empty.
//
//   7 x 7 pixels: one row of 49, in tiles of 49 (16 + 16 + 16 + 1), instead of 7 rows of 7
//
// im2col: Chellapilla, Puri and Simard 2006; here its patches are in the order in which tiles read
// them, so they are the packed panels of the product too.
#include <algorithm>

#include "compiler/autoschedule/templates/convolution.h"
#include "compiler/ir/mutator.h"

namespace kiln::autoschedule {
namespace {

/// Whether all lines of a channel are read at once, so that each is padded when it is copied.
bool is_padded_by_channel(const StageGraph& graph, const Convolution& convolution) {
  if (!convolution.image.is_computed_for) return false;
  const AxisId channel = convolution.tiling.reduce[0];
  return std::ranges::all_of(convolution.tiling.contraction.column_factor->indices,
                             [&](const ir::Expr& index) {
                               const ir::VarRef& var = graph.axes[channel].value;
                               return index == ir::Expr(var) || !ir::uses_var(index, var);
                             });
}

/// Patches row by row of the reduction, which begin where a vector does.
void write_copy(const StageGraph& graph, const Convolution& convolution, StepWriter& steps,
                StageId sums, const std::vector<AxisId>& layout, bool parallel) {
  const Tiling& tiling = convolution.tiling;
  const auto [copy, places] = steps.cache_read(tiling.panel, sums, layout);
  const size_t batch = layout.size() - tiling.reduce.size() - 2;
  const AxisId panels = places[batch];
  const AxisId channels = places[batch + 1];
  steps.storage_align(copy, places[places.size() - 2], convolution.numbers.size.register_lanes);
  steps.reorder(copy, {channels, panels});
  steps.vectorize(copy, places.back());
  if (is_padded_by_channel(graph, convolution)) pad_at(graph, convolution, copy, channels, steps);
  if (!parallel) return;
  for (size_t i = 0; i < batch; ++i)
    steps.parallel(copy, places[i]);
  steps.parallel(copy, channels);
}

void write_patches(const StageGraph& graph, const Convolution& convolution, StepWriter& steps,
                   const Values& values) {
  const Tiling& tiling = convolution.tiling;
  const StageId id = tiling.stage;
  const AxisId line = convolution.image.line;
  const bool parallel = values.get("parallel", 0) != 0;
  steps.fuse(id, {line, tiling.contraction.column});
  std::vector<AxisId> loops = columns_of(graph[id]);
  std::erase(loops, line);
  const auto made = steps.cache_write(id, "global");
  const StageId sums = made.first;
  const std::vector<AxisId>& axes = made.second;
  const auto place_of = [&](AxisId axis) {
    return axes[static_cast<size_t>(std::ranges::find(loops, axis) - loops.begin())];
  };
  const std::vector<AxisId> reduce(axes.begin() + static_cast<std::ptrdiff_t>(loops.size()),
                                   axes.end());
  std::vector<AxisId> outer = tiling.batch;
  std::erase(outer, line);
  std::vector<AxisId> batch;
  std::vector<AxisId> panel_batch;
  for (const AxisId axis : outer) {
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
  write_copy(graph, convolution, steps, sums, joined({panel_batch, {columns}, reduce, {column}}),
             parallel);
  steps.vectorize(sums, column);
  unroll_window(graph, convolution.tiling, sums, reduce, steps, registers_of_tile(tiling, values));
  steps.unroll(sums, row);

  const auto [blocks, inner] =
      split_tile(graph, steps, id, tiling.contraction.row, values.get("rows", 1));
  const AxisId pixels = steps.fuse(id, {line, tiling.contraction.column});
  steps.reorder(id, joined({outer, {blocks, inner, pixels}}));
  steps.vectorize(id, pixels);
  steps.compute_at(sums, id, blocks);
  if (!parallel) return;
  for (const AxisId loop : joined({outer, {blocks}}))
    steps.parallel(id, loop);
}

}  // namespace

bool needs_padding_first(const StageGraph& graph, const Convolution& convolution) {
  return !is_padded_by_channel(graph, convolution);
}

bool may_have_patches(const StageGraph& graph, const Convolution& convolution) {
  const std::vector<AxisId> data = columns_of(graph[convolution.tiling.stage]);
  return data[data.size() - 2] == convolution.image.line;
}

double patches_cycles(const Convolution& convolution) {
  const ContractionSize size = size_in_one_line(convolution);
  const Machine& machine = convolution.machine;
  const double gathered = static_cast<double>(size.steps) * static_cast<double>(size.columns);
  const bool is_far = gathered > static_cast<double>(size.l2_elements);
  const double each = is_far ? machine.far_patch_cycles : machine.patch_cycles;
  return tile_cycles(size, best_tile(size)) + each * gathered;
}

Sketch patches_sketch(const StageGraph& graph, const Convolution& convolution, bool parallel) {
  return {.name = "patches in order",
          .parameters = one_line_parameters(graph, convolution, parallel),
          .write = [&graph, convolution](StepWriter& steps, const Values& values) {
            write_patches(graph, convolution, steps, values);
          }};
}

}  // namespace kiln::autoschedule
