// A convolution as a matrix product over patches (im2col), whose image is one row of columns: for
// images of few columns, where lines would leave most lanes of a vector empty.
//
//   7 x 7 pixels: one row of 49, in tiles of 49 (16 + 16 + 16 + 1), instead of 7 rows of 7
//
// Where the CPU adds some products at once, a patch is one row of steps, as a filter is in memory,
// and both are read in groups: in the order of channels and window, so no filter is copied.
//
// im2col: Chellapilla, Puri and Simard 2006; here its patches are in the order in which tiles read
// them, so they are the packed panels of the product too.
#include <algorithm>

#include "compiler/autoschedule/templates/convolution.h"
#include "compiler/ir/mutator.h"

namespace kiln::autoschedule {
namespace {

// Tiles of columns whose copies are written out. Of 14 x 14 pixels a convolution of 256 channels
// takes 870 us instead of 956 in int8, and 1330 instead of 1550 in bfloat16 (Zen 4).
constexpr int64_t kMostWritten = 8;

ContractionSize size_of_patches(const Convolution& convolution) {
  ContractionSize size = size_in_one_line(convolution);
  count_group(size, convolution.patch_group, convolution.machine);
  size.steps /= convolution.patch_group.products;
  return size;
}

/// Whether all lines of a channel are read at once, so that each is padded when it is copied.
bool is_padded_by_channel(const StageGraph& graph, const Convolution& convolution) {
  if (!convolution.image.is_computed_for || convolution.patch_group.products > 1) return false;
  const AxisId channel = convolution.tiling.reduce[0];
  return std::ranges::all_of(convolution.tiling.contraction.column_factor->indices,
                             [&](const ir::Expr& index) {
                               const ir::VarRef& var = graph.axes[channel].value;
                               return index == ir::Expr(var) || !ir::uses_var(index, var);
                             });
}

/// The steps of the sums: the loops over channels and window, or one over all groups of them.
Reduction split_steps(const Convolution& convolution, StepWriter& steps, StageId sums,
                      const std::vector<AxisId>& reduce) {
  const int64_t products = convolution.patch_group.products;
  if (products == 1) return {reduce, {}};
  const AxisId all = reduce.size() > 1 ? steps.fuse(sums, reduce) : reduce[0];
  const auto [groups, group] = steps.split(sums, all, products);
  return {{groups}, {group}};
}

/// Patches in groups of steps. `panels`: the loop over tiles of columns, which are written out
/// where they are few: of a vector whose first pixel is known, the pieces of lines are known.
void write_group_copy(const Convolution& convolution, StepWriter& steps, StageId copy,
                      AxisId panels, AxisId column, AxisId group, int64_t lanes) {
  steps.vectorize(copy, column);
  steps.unroll(copy, group);
  const int64_t columns = size_in_one_line(convolution).columns;
  if (columns > lanes && columns <= kMostWritten * lanes) steps.unroll(copy, panels);
}

/// Patches row by row of the reduction, which begin where a vector does. `first`: which of the
/// layout is the loop over tiles of columns, `lanes` of them each.
void write_copy(const StageGraph& graph, const Convolution& convolution, StepWriter& steps,
                StageId sums, const std::vector<AxisId>& layout, size_t first, int64_t lanes,
                bool parallel) {
  const auto [copy, places] = steps.cache_read(convolution.tiling.panel, sums, layout);
  const AxisId panels = places[first];
  const AxisId channels = places[first + 1];
  const AxisId last_but_one = places[places.size() - 2];
  const bool in_groups = convolution.patch_group.products > 1;
  if (!in_groups) steps.storage_align(copy, last_but_one, convolution.numbers.size.register_lanes);
  steps.reorder(copy, {channels, panels});
  if (in_groups) {
    write_group_copy(convolution, steps, copy, panels, last_but_one, places.back(), lanes);
  } else {
    steps.vectorize(copy, places.back());
  }
  if (is_padded_by_channel(graph, convolution)) pad_at(graph, convolution, copy, channels, steps);
  if (!parallel) return;
  for (size_t i = 0; i < first; ++i)
    steps.parallel(copy, places[i]);
  steps.parallel(copy, channels);
}

/// Rows stay as they are, of a wider type: in vectors along the steps.
void widen_rows(const Convolution& convolution, StepWriter& steps, StageId sums,
                const std::vector<AxisId>& rows, const Reduction& reduction, bool parallel) {
  const auto [copy, places] = steps.cache_read(convolution.tiling.rows, sums,
                                               joined({rows, reduction.loops, reduction.group}));
  const AxisId all = steps.fuse(copy, {*(places.end() - 2), places.back()});
  widen_along(steps, copy, all, convolution.numbers.size.steps);
  if (!parallel) return;
  for (size_t i = 0; i + 1 < rows.size(); ++i)
    steps.parallel(copy, places[i]);
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
  std::vector<AxisId> row_batch;
  for (const AxisId axis : outer) {
    batch.push_back(place_of(axis));
    if (is_used_in(graph, *tiling.contraction.column_factor, axis)) {
      panel_batch.push_back(place_of(axis));
    }
    if (is_used_in(graph, *tiling.contraction.row_factor, axis))
      row_batch.push_back(place_of(axis));
  }
  const Reduction reduction = split_steps(convolution, steps, sums, reduce);
  const auto [rows, row] =
      steps.split(sums, place_of(tiling.contraction.row), values.get("rows", 1));
  const auto [columns, column] =
      steps.split(sums, place_of(tiling.contraction.column), values.get("lanes", 1));
  steps.reorder(sums,
                joined({batch, {rows, columns}, reduction.loops, {row, column}, reduction.group}));
  write_copy(graph, convolution, steps, sums,
             joined({panel_batch, {columns}, reduction.loops, {column}, reduction.group}),
             panel_batch.size(), values.get("lanes", 1), parallel);
  if (convolution.patch_group.copies_rows) {
    widen_rows(convolution, steps, sums, joined({row_batch, {rows, row}}), reduction, parallel);
  }
  steps.vectorize(sums, column);
  if (reduction.group.empty()) {
    unroll_window(graph, convolution.tiling, sums, reduce, steps,
                  registers_of_tile(tiling, values));
  }
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
  const ContractionSize size = size_of_patches(convolution);
  const Machine& machine = convolution.machine;
  const double gathered =
      static_cast<double>(convolution.numbers.size.steps) * static_cast<double>(size.columns);
  const bool is_far = gathered > static_cast<double>(size.l2_elements);
  const double each = is_far ? machine.far_patch_cycles : machine.patch_cycles;
  return tile_cycles(size, best_tile(size)) + each * gathered;
}

Sketch patches_sketch(const StageGraph& graph, const Convolution& convolution, bool parallel) {
  return {
      .name = "patches in order",
      .parameters = one_line_parameters(graph, convolution, size_of_patches(convolution), parallel),
      .write = [&graph, convolution](StepWriter& steps, const Values& values) {
        write_patches(graph, convolution, steps, values);
      }};
}

}  // namespace kiln::autoschedule
