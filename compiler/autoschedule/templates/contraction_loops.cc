// Writes the loops of a matrix product: a tile in registers, around it the packed panels, around
// those the blocks that cores share.
//
//   C[i, j] = sum[k](..)  ->  for j_block: pack B; for i_tile, j_tile, k: 8 x 48 of C in registers
//
// The loop order and the packing are Goto's (Goto and van de Geijn 2008; BLIS, Van Zee 2015),
// except that A stays where it is while its rows lie along k: broadcast loads do not care.
#include "compiler/autoschedule/templates/contraction_loops.h"

#include <algorithm>

#include "compiler/ir/gpu_arch.h"
#include "runtime/core/cpu_name.h"

namespace kiln::autoschedule {
namespace {

constexpr int64_t kLine = 16;  // floats of a line of the cache, 64 bytes
// How many tiles of rows a copy of a transposed row factor takes from each line of it. 16 tiles of
// 8 rows of floats are 512 bytes: eight whole lines of the cache.
constexpr int64_t kTransposedTiles = 16;
// Bytes that are widened at once: two lines of int16 are written.
constexpr int64_t kWidenedLanes = 64;
// Multiply-adds that may stand in a loop, once its inner loops over the window are unrolled, a
// limit of the code: 24 sums and a window of 3 x 3, with loads for half as many still fewer
// instructions than caches of decoded ones hold (1500 on Skylake).
constexpr int64_t kMostUnrolled = 216;

/// The rows of a panel begin where a vector does, if not all of its vectors are full.
void align_panel(const Tiling& tiling, StepWriter& steps, StageId copy,
                 const std::vector<AxisId>& axes, const Values& values) {
  // Rows of full vectors are aligned as they are; others would have vectors across two lines.
  if (tiling.group.products > 1) return;
  if (values.get("lanes", 1) % tiling.register_lanes == 0) return;
  steps.storage_align(copy, axes[axes.size() - 2], tiling.register_lanes);
}

/// Columns of a copy whose innermost loop is over the products that are added at once, or rows: in
/// vectors that are interleaved, or where a group lies side by side already, one group after the
/// other, as many as a line has before the next column. `groups`: the loop over all of them.
void write_group_copy(const StageGraph& graph, const Tiling& tiling, const ir::TensorRead& factor,
                      AxisId neighbour, StepWriter& steps, StageId copy, AxisId groups, AxisId lane,
                      AxisId group) {
  const bool is_together = is_contiguous_in(graph, factor, neighbour);
  if (!is_together && distance_along(graph, factor, tiling.group.axis) == 1) {
    const auto [lines, of_line] = steps.split(copy, groups, kLine);
    steps.reorder(copy, {lines, lane, of_line, group});
    steps.unroll(copy, of_line);
    return steps.vectorize(copy, group);
  }
  steps.vectorize(copy, lane);
  steps.unroll(copy, group);
}

/// The axis of the sum along which a factor lies.
std::optional<AxisId> axis_along(const StageGraph& graph, const Tiling& tiling,
                                 const ir::TensorRead& factor) {
  const auto along = std::ranges::find_if(
      tiling.reduce, [&](AxisId axis) { return is_contiguous_in(graph, factor, axis); });
  return along == tiling.reduce.end() ? std::nullopt : std::optional(*along);
}

/// A panel of columns that lie along the reduction: squares of registers are turned (see
/// codegen/llvm_interleave.cc) where `turns_panels` has it. Else vectors of columns are gathered,
/// so many steps as a line of the cache has before the next.
void write_turned_panel(const StageGraph& graph, const Tiling& tiling, StepWriter& steps,
                        StageId copy, const std::vector<AxisId>& axes, const Values& values) {
  if (!turns_panels(graph, tiling, values.get("lanes", 1))) {
    steps.split(copy, axes[axes.size() - 2], kLine);
    return steps.vectorize(copy, axes.back());
  }
  std::vector<AxisId> others(axes.end() - 1 - static_cast<std::ptrdiff_t>(tiling.reduce.size()),
                             axes.end() - 1);
  const auto along = std::ranges::find(
      tiling.reduce, *axis_along(graph, tiling, *tiling.contraction.column_factor));
  const auto step = others.begin() + (along - tiling.reduce.begin());
  const auto [lines, of_line] = steps.split(copy, *step, tiling.register_lanes);
  const auto [squares, column] = steps.split(copy, axes.back(), tiling.register_lanes);
  others.erase(step);
  steps.reorder(copy, joined({others, {lines, squares, column, of_line}}));
  steps.unroll(copy, column);
  steps.vectorize(copy, of_line);
}

/// A panel is copied in vectors of its columns; `panels` that are copied together are, row by row.
void write_panel_copy(const StageGraph& graph, const Tiling& tiling, StepWriter& steps,
                      StageId copy, const std::vector<AxisId>& axes, const Values& values,
                      size_t panels) {
  if (tiling.group.products > 1) {
    const auto row = axes.end() - 2 - static_cast<std::ptrdiff_t>(tiling.reduce.size());
    if (panels > 0) steps.reorder(copy, joined({{row, axes.end() - 2}, {*(row - 1)}}));
    return write_group_copy(graph, tiling, *tiling.contraction.column_factor,
                            tiling.contraction.column, steps, copy, *(axes.end() - 3),
                            *(axes.end() - 2), axes.back());
  }
  if (!is_contiguous_in(graph, *tiling.contraction.column_factor, tiling.contraction.column))
    return write_turned_panel(graph, tiling, steps, copy, axes, values);
  if (panels > 0) {
    const auto row = axes.end() - 1 - static_cast<std::ptrdiff_t>(tiling.reduce.size());
    steps.reorder(copy, joined({{row, axes.end() - 1}, {*(row - 1)}}));
  }
  steps.vectorize(copy, axes.back());
}

/// The axes of a copy of a whole factor, in the order of its layout.
struct CopyAxes {
  std::vector<AxisId> batch;
  std::vector<AxisId> tiles;
  std::vector<AxisId> reduce;
  AxisId element = 0;
};

CopyAxes copy_axes(const std::vector<AxisId>& axes, size_t batch, size_t tiles) {
  const auto tiles_begin = axes.begin() + static_cast<std::ptrdiff_t>(batch);
  const auto reduce_begin = tiles_begin + static_cast<std::ptrdiff_t>(tiles);
  return {{axes.begin(), tiles_begin},
          {tiles_begin, reduce_begin},
          {reduce_begin, axes.end() - 1},
          axes.back()};
}

/// Neighbours in memory are of different products: a line has elements for all of them, which are
/// taken from it at once.
void write_copy_for_all(StepWriter& steps, StageId copy, const CopyAxes& axes, bool parallel) {
  steps.reorder(copy, joined({axes.tiles, axes.reduce, axes.batch, {axes.element}}));
  steps.vectorize(copy, axes.element);
  if (!parallel) return;
  for (const AxisId axis : axes.tiles)
    steps.parallel(copy, axis);
  steps.parallel(copy, axes.reduce[0]);
}

/// The row factor lies along its rows: a tile takes a piece of each line, and all lines are of
/// other pages.
void copy_rows_in_order(const StageGraph& graph, const Tiling& tiling, StepWriter& steps,
                        const std::vector<AxisId>& tiles, AxisId row, bool parallel) {
  const std::vector<AxisId> layout = joined({tiling.row_batch, tiles, tiling.reduce, {row}});
  const auto [copy, made] = steps.cache_read(tiling.rows, tiling.stage, layout);
  const CopyAxes axes = copy_axes(made, tiling.row_batch.size(), tiles.size());
  if (lies_along(graph, *tiling.contraction.row_factor, tiling.row_batch))
    return write_copy_for_all(steps, copy, axes, parallel);
  std::vector<AxisId> outer = joined({axes.batch, {axes.tiles.begin(), axes.tiles.end() - 1}});
  AxisId taken = axes.tiles.back();
  if (tiles.size() == 1) {
    // Taking all tiles of a line before the next line would write to as many places as there are
    // tiles; taking one reads each line again for each: TLB misses either way. A group is in
    // between.
    const auto [groups, group] = steps.split(copy, taken, kTransposedTiles);
    outer.push_back(groups);
    taken = group;
  }
  steps.reorder(copy, joined({outer, axes.reduce, {taken, axes.element}}));
  steps.vectorize(copy, axes.element);
  if (!parallel) return;
  for (const AxisId axis : outer)
    steps.parallel(copy, axis);
}

/// Rows that are copied for their type alone stay rows: in vectors along the reduction.
void widen_rows(const StageGraph& graph, const Tiling& tiling, StepWriter& steps,
                const std::vector<AxisId>& tiles, AxisId row, const Reduction& reduction,
                bool parallel) {
  // The groups last, whatever the order of the loops.
  const int64_t products = tiling.group.products;
  const AxisId innermost = products > 1 ? tiling.group.axis : tiling.reduce.back();
  std::vector<AxisId> others;
  AxisId groups = 0;
  for (size_t i = 0; i < reduction.loops.size(); ++i) {
    if (tiling.reduce[i] == innermost) {
      groups = reduction.loops[i];
    } else {
      others.push_back(reduction.loops[i]);
    }
  }
  const auto [copy, axes] =
      steps.cache_read(tiling.rows, tiling.stage,
                       joined({tiling.row_batch, tiles, {row}, others, {groups}, reduction.group}));
  const AxisId along =
      products > 1 ? steps.fuse(copy, {*(axes.end() - 2), axes.back()}) : axes.back();
  const int64_t extent = constant_extent(graph, innermost).value_or(kWidenedLanes);
  widen_along(steps, copy, along, (extent + products - 1) / products * products);
  if (!parallel) return;
  const auto end = axes.begin() + static_cast<std::ptrdiff_t>(tiling.row_batch.size()) + 1;
  for (auto axis = axes.begin(); axis != end; ++axis)
    steps.parallel(copy, *axis);
}

std::vector<AxisId> without(std::vector<AxisId> axes, const std::vector<AxisId>& others) {
  std::erase_if(axes, [&](AxisId axis) { return std::ranges::find(others, axis) != others.end(); });
  return axes;
}

/// Rows are copied in the order in which tiles read them, or, where they lie along the steps, as
/// they are.
void copy_rows(const StageGraph& graph, const Tiling& tiling, StepWriter& steps,
               const std::vector<AxisId>& tiles, AxisId row, const Reduction& reduction,
               bool parallel) {
  const bool lie_along_sum =
      is_contiguous_in(graph, *tiling.contraction.row_factor, tiling.reduce.back());
  if (lie_along_sum) return widen_rows(graph, tiling, steps, tiles, row, reduction, parallel);
  copy_rows_in_order(graph, tiling, steps, tiles, row, parallel);
}

/// Rows of tiles lie along the steps, wherever they lie before. So many groups are taken at once
/// that the lines which their steps lie in do not evict each other.
void copy_rows_of_tiles(const StageGraph& graph, const Tiling& tiling, StepWriter& steps,
                        const std::vector<AxisId>& tiles, AxisId row, const Reduction& reduction,
                        bool parallel) {
  const auto [copy, axes] =
      steps.cache_read(tiling.rows, tiling.stage,
                       joined({tiling.row_batch, tiles, {row}, reduction.loops, reduction.group}));
  const auto row_axis = axes.begin() + static_cast<std::ptrdiff_t>(tiling.row_batch.size()) +
                        static_cast<std::ptrdiff_t>(tiles.size());
  const std::vector<AxisId> window(row_axis + 1, axes.end() - 2);
  const auto [lines, of_line] = steps.split(copy, *(axes.end() - 2), kLine / 2);
  // Neighbours in memory are taken together: rows, or steps of a window.
  const bool rows_are_neighbours =
      is_contiguous_in(graph, *tiling.contraction.row_factor, tiling.contraction.row);
  steps.reorder(copy, rows_are_neighbours
                          ? joined({window, {lines, *row_axis, of_line, axes.back()}})
                          : joined({{*row_axis, lines}, window, {of_line, axes.back()}}));
  steps.unroll(copy, of_line);
  steps.unroll(copy, axes.back());
  if (!parallel) return;
  for (auto axis = axes.begin(); axis != row_axis; ++axis)
    steps.parallel(copy, *axis);
}

/// The same for rows whose steps of a group lie apart.
void copy_rows_in_groups(const StageGraph& graph, const Tiling& tiling, StepWriter& steps,
                         const std::vector<AxisId>& tiles, AxisId row, const Reduction& reduction,
                         bool parallel) {
  if (distance_along(graph, *tiling.contraction.row_factor, tiling.group.axis) == 1)
    return widen_rows(graph, tiling, steps, tiles, row, reduction, parallel);
  if (tiling.group.in_tiles)
    return copy_rows_of_tiles(graph, tiling, steps, tiles, row, reduction, parallel);
  const auto [copy, axes] =
      steps.cache_read(tiling.rows, tiling.stage,
                       joined({tiling.row_batch, tiles, reduction.loops, {row}, reduction.group}));
  write_group_copy(graph, tiling, *tiling.contraction.row_factor, tiling.contraction.row, steps,
                   copy, *(axes.end() - 3), *(axes.end() - 2), axes.back());
  if (!parallel) return;
  const auto end = axes.begin() + static_cast<std::ptrdiff_t>(tiling.row_batch.size()) + 1;
  for (auto axis = axes.begin(); axis != end; ++axis)
    steps.parallel(copy, *axis);
}

/// Whether a copy of the rows would be of another type: widen_copies makes it so.
bool may_widen_rows(const StageGraph& graph, const Tiling& tiling) {
  const Stage& rows = graph[tiling.rows.stage];
  const bool is_other = tiling.rows.stage != tiling.panel.stage && rows.role.cell_of < 0 &&
                        graph[tiling.stage].role.cell_of < 0 && !graph[tiling.stage].part_of;
  return is_other && ir::is_short_float(rows.types[tiling.rows.output]) &&
         graph[tiling.stage].types[0] == DType::Float32;
}

/// A copy of all panels before the product.
void write_copy_of_panels(const StageGraph& graph, const Tiling& tiling, StepWriter& steps,
                          StageId copy, const std::vector<AxisId>& axes, const Values& values) {
  const bool parallel = values.get("parallel", 0) != 0 && tiling.panel_copy_alone == 0;
  if (tiling.group.products == 1 &&
      lies_along(graph, *tiling.contraction.column_factor, tiling.panel_batch)) {
    const CopyAxes all = copy_axes(axes, tiling.panel_batch.size(), 1);
    return write_copy_for_all(steps, copy, all, parallel);
  }
  write_panel_copy(graph, tiling, steps, copy, axes, values, 0);
  if (!parallel) return;
  const auto end = axes.begin() + static_cast<std::ptrdiff_t>(tiling.panel_batch.size()) + 1;
  for (auto axis = axes.begin(); axis != end; ++axis)
    steps.parallel(copy, *axis);
}

/// The innermost loops.
void write_tile(const StageGraph& graph, const Tiling& tiling, StepWriter& steps,
                const Values& values, const std::vector<AxisId>& reduce, AxisId row,
                AxisId column) {
  steps.vectorize(tiling.stage, column);
  unroll_window(graph, tiling, tiling.stage, reduce, steps, registers_of_tile(tiling, values));
  steps.unroll(tiling.stage, row);
}

void move_last(std::vector<AxisId>& axes, AxisId last) {
  std::stable_partition(axes.begin(), axes.end(), [&](AxisId axis) { return axis != last; });
}

/// The axis of the sum along which rows lie, where sums may be added in another order: as the
/// innermost one it has a tile go on in its lines.
std::optional<AxisId> axis_of_rows(const Chooser& chooser, const Tiling& tiling) {
  const StageGraph& graph = chooser.graph;
  const ir::TensorRead& rows = *tiling.contraction.row_factor;
  const bool is_plain = only_reorders(
      graph, rows, joined({tiling.row_batch, tiling.reduce, {tiling.contraction.row}}));
  if (tiling.group.products > 1 || !is_plain || !may_reassociate(chooser, tiling.stage))
    return std::nullopt;
  return axis_along(graph, tiling, rows);
}

/// Cycles of a copy that is not worth waking other cores; 0 where it is, or nobody knows.
double copy_alone(const Chooser& chooser, const std::vector<AxisId>& axes) {
  const Machine& machine = chooser.machine;
  const auto elements = static_cast<double>(constant_extent_of(chooser.graph, axes).value_or(0));
  const double cycles = elements * machine.copied_row_cycles;
  return cycles < machine.wake_cycles ? cycles : 0;
}

}  // namespace

Tiling tiling_of(const Chooser& chooser, StageId id, const Contraction& contraction) {
  const StageGraph& graph = chooser.graph;
  Tiling tiling{.stage = id,
                .contraction = contraction,
                .batch = {},
                .reduce = graph[id].reduce,
                .panel_batch = {}};
  for (const AxisId axis : columns_of(graph[id])) {
    if (axis == contraction.row || axis == contraction.column) continue;
    tiling.batch.push_back(axis);
    if (is_used_in(graph, *contraction.column_factor, axis)) tiling.panel_batch.push_back(axis);
    if (is_used_in(graph, *contraction.row_factor, axis)) tiling.row_batch.push_back(axis);
  }
  tiling.panel = {contraction.column_factor->stage, contraction.column_factor->output};
  tiling.rows = {contraction.row_factor->stage, contraction.row_factor->output};
  tiling.register_lanes = register_lanes(chooser, id);
  tiling.has_many_cores = chooser.machine.cores > kFewCores;
  tiling.row_copy_alone =
      copy_alone(chooser, joined({tiling.row_batch, tiling.reduce, {contraction.row}}));
  tiling.panel_copy_alone =
      copy_alone(chooser, joined({tiling.panel_batch, tiling.reduce, {contraction.column}}));
  tiling.group = product_group_of(chooser, id, contraction);
  tiling.widens_rows = tiling.group.products == 1 && may_widen_rows(graph, tiling);
  // A row of a tile is steps along that axis.
  if (tiling.group.in_tiles) move_last(tiling.reduce, tiling.group.axis);
  if (const auto along = axis_of_rows(chooser, tiling)) move_last(tiling.reduce, *along);
  return tiling;
}

bool only_reorders(const StageGraph& graph, const ir::TensorRead& read,
                   const std::vector<AxisId>& axes) {
  if (read.indices.size() != axes.size()) return false;
  return std::ranges::all_of(read.indices, [&](const ir::Expr& index) {
    return std::ranges::any_of(
        axes, [&](AxisId axis) { return index == ir::Expr(graph.axes[axis].value); });
  });
}

void widen_along(StepWriter& steps, StageId copy, AxisId along, int64_t extent) {
  steps.vectorize(copy, steps.split(copy, along, std::min(kWidenedLanes, extent)).second);
}

bool lies_along(const StageGraph& graph, const ir::TensorRead& read,
                const std::vector<AxisId>& axes) {
  return std::ranges::any_of(axes,
                             [&](AxisId axis) { return is_contiguous_in(graph, read, axis); });
}

bool turns_panels(const StageGraph& graph, const Tiling& tiling, int64_t lanes) {
  // Of less the vectors that are left over would be most of it.
  const std::optional<AxisId> along = axis_along(graph, tiling, *tiling.contraction.column_factor);
  return tiling.group.products == 1 && lanes % tiling.register_lanes == 0 && along &&
         constant_extent(graph, *along).value_or(kAnyExtent) >= 2 * tiling.register_lanes;
}

std::vector<AxisId> joined(std::initializer_list<std::vector<AxisId>> parts) {
  std::vector<AxisId> all;
  for (const std::vector<AxisId>& part : parts)
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::pair<AxisId, AxisId> split_tile(const StageGraph& graph, StepWriter& steps, StageId stage,
                                     AxisId axis, int64_t factor) {
  const int64_t extent = constant_extent(graph, axis).value_or(factor);
  return steps.split(stage, axis, std::clamp<int64_t>(extent, 1, factor));
}

TileLoops split_tiles(const StageGraph& graph, const Tiling& tiling, StepWriter& steps,
                      const Values& values, std::string_view columns) {
  const Contraction& contraction = tiling.contraction;
  const auto [row_tiles, row] =
      split_tile(graph, steps, tiling.stage, contraction.row, values.get("rows", 1));
  const auto [column_tiles, column] =
      split_tile(graph, steps, tiling.stage, contraction.column, values.get(columns, 1));
  return {row_tiles, row, column_tiles, column};
}

std::vector<AxisId> tiles_in_order(const Values& values, AxisId rows, AxisId columns) {
  if (values.get("columns first", 0) != 0) return {columns, rows};
  return {rows, columns};
}

/// Then there are only tiles of columns for cores to share.
bool has_one_row_tile(const StageGraph& graph, const Tiling& tiling, const Values& values) {
  const int64_t extent = constant_extent(graph, tiling.contraction.row).value_or(kAnyExtent);
  return extent <= values.get("rows", 1);
}

Reduction split_groups(const Tiling& tiling, StepWriter& steps) {
  Reduction reduction{tiling.reduce, {}};
  if (tiling.group.products == 1) return reduction;
  const auto [groups, group] = steps.split(tiling.stage, tiling.group.axis, tiling.group.products);
  std::ranges::replace(reduction.loops, tiling.group.axis, groups);
  reduction.group = {group};
  return reduction;
}

int64_t registers_of_tile(const Tiling& tiling, const Values& values) {
  const int64_t lanes = tiling.register_lanes;
  return values.get("rows", 1) * ((values.get("lanes", 1) + lanes - 1) / lanes);
}

void unroll_window(const StageGraph& graph, const Tiling& tiling, StageId stage,
                   const std::vector<AxisId>& reduce, StepWriter& steps, int64_t sums) {
  for (size_t i = reduce.size(); i-- > 1;) {
    const std::optional<int64_t> extent = constant_extent(graph, tiling.reduce[i]);
    if (!extent || *extent > kMostUnrolled || sums * *extent > kMostUnrolled) return;
    sums *= *extent;
    if (*extent > 1) steps.unroll(stage, reduce[i]);
  }
}

bool shares_rows(const Tiling& tiling, bool parallel) {
  return parallel && tiling.row_copy_alone == 0;
}

bool writes_out_window(const StageGraph& graph, const Tiling& tiling, int64_t sums) {
  if (tiling.reduce.size() < 2) return false;
  const int64_t extent = constant_extent(graph, tiling.reduce.back()).value_or(kMostUnrolled);
  return extent > 1 && extent <= kMostUnrolled / sums;
}

void write_outer_products(const StageGraph& graph, const Tiling& tiling, StepWriter& steps,
                          const Values& values) {
  const StageId id = tiling.stage;
  const auto [rows, row, columns, column] = split_tiles(graph, tiling, steps, values, "lanes");
  std::vector<AxisId> reduce = tiling.reduce;
  std::vector<AxisId> depth;
  const bool copies_rows = values.get("rows in order", 0) != 0;
  if (const int64_t steps_at_once = copies_rows ? 0 : values.get("depth", 0); steps_at_once > 0) {
    const auto [chunks, chunk] = split_tile(graph, steps, id, reduce[0], steps_at_once);
    depth = {chunks};
    reduce[0] = chunk;
  }
  std::vector<AxisId> tiles = {rows, columns};
  const int64_t block = values.get("rows of a panel", 0);
  const int64_t tiles_at_once = values.get("tiles at once", 0);
  // A block of rows takes some steps of all columns before the next ones, or all rows those of a
  // block of columns.
  std::vector<AxisId> blocks;
  if (tiles_at_once > 0 && !depth.empty()) {
    const auto [outer, inner] = steps.split(id, columns, tiles_at_once);
    blocks = {outer};
    tiles = {inner, rows};
  } else if (values.get("columns first", 0) != 0) {
    std::swap(tiles[0], tiles[1]);
  } else if (block > 1 && !copies_rows) {
    const auto [outer, inner] = steps.split(id, rows, block);
    blocks = {outer};
    tiles = {columns, inner};
  }
  steps.reorder(id, joined({tiling.batch, blocks, depth, tiles, reduce, {row, column}}));
  const bool parallel = values.get("parallel", 0) != 0;
  if (copies_rows)
    copy_rows_in_order(graph, tiling, steps, {rows}, row, shares_rows(tiling, parallel));
  if (const int64_t ahead = values.get("steps ahead", 0); ahead > 0)
    steps.prefetch(tiling.panel, id, reduce.back(), ahead);
  if (const int64_t ahead = values.get("rows ahead", 0); ahead > 0)
    steps.prefetch(tiling.rows, id, rows, ahead);
  write_tile(graph, tiling, steps, values, reduce, row, column);
  if (parallel) {
    const bool is_one_tile = tiles[0] == rows && has_one_row_tile(graph, tiling, values);
    std::vector<AxisId> outer = joined({tiling.batch, blocks});
    if (blocks.empty() && depth.empty()) outer.push_back(is_one_tile ? columns : tiles[0]);
    parallel_outer(graph, steps, id, outer);
  }
}

void write_packed_panels(const StageGraph& graph, const Tiling& tiling, StepWriter& steps,
                         const Values& values) {
  const StageId id = tiling.stage;
  const bool parallel = values.get("parallel", 0) != 0;
  const auto [rows, row, columns, column] = split_tiles(graph, tiling, steps, values, "lanes");
  std::vector<AxisId> panels = {columns};
  if (const int64_t at_once = values.get("panels at once", 1); at_once > 1) {
    const auto [blocks, panel] = steps.split(id, columns, at_once);
    panels = {blocks, panel};
  }
  const AxisId block = panels[0];
  std::vector<AxisId> outer = {block};
  const std::vector<AxisId> inside(panels.begin() + 1, panels.end());
  const Reduction reduction = split_groups(tiling, steps);
  std::vector<AxisId> reduce = reduction.loops;
  const bool copies_rows = values.get("rows in order", 0) != 0;
  const int64_t depth = copies_rows ? 0 : values.get("depth", 0);
  if (depth > 0) {
    const auto [chunks, chunk] = split_tile(graph, steps, id, reduce[0], depth);
    outer.push_back(chunks);
    reduce[0] = chunk;
  }
  const bool columns_first = values.get("columns first", 0) != 0;
  const std::vector<AxisId> tiles =
      columns_first ? joined({inside, {rows}}) : joined({{rows}, inside});
  steps.reorder(id, joined({tiling.batch, outer, tiles, reduce, {row, column}, reduction.group}));
  const std::vector<AxisId> layout =
      joined({tiling.panel_batch, outer, inside, reduce, {column}, reduction.group});
  const auto [copy, axes] = steps.cache_read(tiling.panel, id, layout);
  align_panel(tiling, steps, copy, axes, values);
  if (tiling.group.copies_rows)
    copy_rows_in_groups(graph, tiling, steps, {rows}, row, reduction,
                        shares_rows(tiling, parallel));
  if (copies_rows)
    copy_rows(graph, tiling, steps, {rows}, row, reduction, shares_rows(tiling, parallel));
  write_tile(graph, tiling, steps, values, reduce, row, column);
  if (parallel) parallel_outer(graph, steps, id, joined({tiling.batch, {block}}));
  write_panel_copy(graph, tiling, steps, copy, axes, values, inside.size());
  steps.compute_at(copy, id, outer.back());
}

void write_panels_in_order(const StageGraph& graph, const Tiling& tiling, StepWriter& steps,
                           const Values& values) {
  const StageId id = tiling.stage;
  const bool parallel = values.get("parallel", 0) != 0;
  const auto [rows, row, columns, column] = split_tiles(graph, tiling, steps, values, "lanes");
  const bool rows_first = values.get("rows first", 0) != 0;
  std::vector<AxisId> outer = rows_first ? tiling.row_batch : tiling.batch;
  std::vector<AxisId> row_tiles = {rows};
  std::vector<AxisId> tiles = {columns};
  if (const int64_t block = values.get("rows of a panel", 0); block > 0) {
    const auto [blocks, inner] = steps.split(id, rows, block);
    row_tiles = {blocks, inner};
    tiles.push_back(inner);
  }
  outer.push_back(row_tiles[0]);
  if (rows_first) tiles = joined({without(tiling.batch, tiling.row_batch), tiles});
  const Reduction reduction = split_groups(tiling, steps);
  steps.reorder(id, joined({outer, tiles, reduction.loops, {row, column}, reduction.group}));
  const std::vector<AxisId> layout =
      joined({tiling.panel_batch, {columns}, reduction.loops, {column}, reduction.group});
  const auto [copy, axes] = steps.cache_read(tiling.panel, id, layout);
  align_panel(tiling, steps, copy, axes, values);
  if (tiling.group.copies_rows)
    copy_rows_in_groups(graph, tiling, steps, row_tiles, row, reduction,
                        shares_rows(tiling, parallel));
  if (values.get("rows in order", 0) != 0)
    copy_rows(graph, tiling, steps, row_tiles, row, reduction, shares_rows(tiling, parallel));
  write_tile(graph, tiling, steps, values, reduction.loops, row, column);
  if (parallel) {
    parallel_outer(graph, steps, id, outer);
    // Of tiles of rows alone there may be fewer than cores.
    if (tiling.has_many_cores) steps.parallel(id, tiles[0]);
  }
  write_copy_of_panels(graph, tiling, steps, copy, axes, values);
}

AxisId write_rows_of_block(const StageGraph& graph, const Tiling& tiling, StepWriter& steps,
                           const Values& values) {
  const StageId id = tiling.stage;
  AxisId rows = tiling.contraction.row;
  std::vector<AxisId> outer = tiling.batch;
  if (const int64_t block = values.get("rows of a block", 0); block > 0) {
    const auto [blocks, inner] = split_tile(graph, steps, id, rows, block);
    outer.push_back(blocks);
    rows = inner;
  }
  const auto [tiles, row] = steps.split(id, rows, values.get("rows", 1));
  const auto [columns, column] =
      split_tile(graph, steps, id, tiling.contraction.column, values.get("lanes", 1));
  steps.reorder(
      id, joined({outer, tiles_in_order(values, tiles, columns), tiling.reduce, {row, column}}));
  const auto [copy, axes] = steps.cache_read(
      tiling.panel, id, joined({tiling.panel_batch, {columns}, tiling.reduce, {column}}));
  align_panel(tiling, steps, copy, axes, values);
  write_tile(graph, tiling, steps, values, tiling.reduce, row, column);
  write_copy_of_panels(graph, tiling, steps, copy, axes, values);
  return outer.empty() ? tiles : outer.back();
}

void write_dots(const StageGraph& graph, const Tiling& tiling, int64_t lanes, StepWriter& steps,
                const Values& values) {
  const StageId id = tiling.stage;
  const auto [rows, row, columns, column] = split_tiles(graph, tiling, steps, values, "columns");
  std::vector<AxisId> reduce = tiling.reduce;
  const auto [chunks, chunk] = steps.split(id, reduce.back(), lanes);
  reduce.back() = chunks;
  const std::vector<AxisId> tiles = tiles_in_order(values, rows, columns);
  steps.reorder(id, joined({tiling.batch, tiles, reduce, {row, column, chunk}}));
  if (values.get("columns in order", 0) != 0) {
    steps.cache_read(tiling.panel, id,
                     joined({tiling.panel_batch, {columns}, reduce, {column, chunk}}));
  }
  steps.vectorize(id, chunk);
  steps.unroll(id, column);
  steps.unroll(id, row);
  if (values.get("parallel", 0) != 0) {
    const AxisId shared = has_one_row_tile(graph, tiling, values) ? columns : tiles[0];
    parallel_outer(graph, steps, id, joined({tiling.batch, {shared}}));
  }
}

}  // namespace kiln::autoschedule
