// Writes the schedule of a tile of matrix instructions: copies of both factors in shared memory,
// sums in registers, as the lanes of a warp have them.
//
//   Y[b, y, x, m] = sum[r, s, c](X[b, y + r, x + s, c] * F[r, s, c, m])
//     ->  rows b.y.x, columns m, sum r.s.c, each one loop; X.shared[b.y.x, r.s.c] has what is read
//         for each row and step, as if the image were laid out so (im2col), but only of a tile
#include <algorithm>
#include <array>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/templates/contraction_loops.h"
#include "compiler/autoschedule/templates/factor_copies.h"
#include "compiler/autoschedule/templates/fetched_factors.h"
#include "compiler/autoschedule/templates/matrix_tile.h"

namespace kiln::autoschedule {
namespace {

constexpr int64_t kRows = ir::kMatrixRows;
constexpr int64_t kColumns = ir::kMatrixColumns;

/// The loops of one side.
struct SideLoops {
  AxisId tiles = 0;
  AxisId warp = 0;
  AxisId thread = 0;
  std::vector<AxisId> products;  // of a warp, and columns that are loaded with each of them
  AxisId own = 0;                // the two rows or columns of a lane
  std::vector<AxisId> in_order;  // all of them as the side has its elements
};

struct Loops {
  std::vector<AxisId> batch;
  SideLoops rows;
  SideLoops columns;

  std::vector<AxisId> blocks() const { return joined({batch, {rows.tiles, columns.tiles}}); }
  std::vector<AxisId> warps() const { return {rows.warp, columns.warp}; }
  /// Of a thread: products down and across, its rows and columns.
  std::vector<AxisId> own() const {
    return joined({rows.products, columns.products, {rows.own, columns.own}});
  }
  std::vector<AxisId> all() const {
    return joined({blocks(), warps(), {rows.thread, columns.thread}, own()});
  }
};

/// Those of the sum: the loop between barriers, and what is in it.
struct SumLoops {
  AxisId part = 0;
  AxisId group = 0;
  AxisId step = 0;
};

class MatrixWriter {
 public:
  MatrixWriter(const StageGraph& graph, const MatrixTile& tile, StepWriter& steps)
      : graph_(graph),
        tile_(tile),
        rows_(panel_of(graph, tile, true)),
        columns_(panel_of(graph, tile, false)),
        steps_(steps) {}

  void write() {
    const StageId id = tile_.stage;
    const Contraction& product = tile_.contraction;
    std::vector<Fetch> fetches;
    const FetchedFactor rows = fetched_factor(graph_, tile_, true, steps_);
    const FetchedFactor columns = fetched_factor(graph_, tile_, false, steps_);
    if (!tile_.is_joined) {
      fetches = {fetch(rows, rows_), fetch(columns, columns_)};
      compute_prologues();
    }
    // The loops give the sums their layout, then they are those of what is stored.
    cut(id);
    const auto [sums, axes] = steps_.cache_write(id, "local");
    if (tile_.epilogue) steps_.compute_inline(id);
    const StageId stored = tile_.epilogue ? tile_.epilogue->stage : id;
    const Loops loops = cut(stored);
    steps_.bind(stored, steps_.fuse(stored, loops.blocks()), "blockIdx.x");
    steps_.bind(stored, steps_.fuse(stored, loops.warps()), "threadIdx.z");
    steps_.bind(stored, loops.rows.thread, "threadIdx.y");
    steps_.bind(stored, loops.columns.thread, "threadIdx.x");
    for (const AxisId axis : loops.own())
      if (axis != loops.columns.own) steps_.unroll(stored, axis);
    // Turned bytes lie between those of the lane's other product.
    store_neighbours(graph_, steps_, stored, loops.columns.own, columns_.has_turned_bytes ? 1 : 2);
    steps_.compute_at(sums, stored, loops.columns.thread);
    const Axes of_sums(loops.all(), axes);
    const SumLoops sum = write_sums(sums, loops, of_sums);
    if (tile_.is_joined) {
      fetches = {fetch_joined(rows.as_read, *product.row_factor, rows_, sums, loops.batch,
                              loops.rows, of_sums, sum),
                 fetch_joined(columns.as_read, *product.column_factor, columns_, sums, loops.batch,
                              loops.columns, of_sums, sum)};
      if (tile_.padding) steps_.compute_inline(*tile_.padding);
      compute_prologues();
    }
    for (const Fetch& each : fetches) {
      steps_.compute_at(each.copy, sums, sum.part);
      // What waits in registers is stored beside what others still read.
      if (each.is_computed && tile_.stages > 1) steps_.double_buffer(each.copy);
      fetch_together(each);
    }
    if (tile_.stages > 1) steps_.software_pipeline(sums, sum.part, tile_.stages);
  }

 private:
  struct Fetch {
    StageId copy;
    std::vector<AxisId> axes;
    int64_t lanes = 1;
    bool is_computed = false;
  };

  /// The axes of the sums in the place of loops, and those of the reduction behind them.
  class Axes {
   public:
    Axes(const std::vector<AxisId>& loops, const std::vector<AxisId>& axes)
        : loops_(loops), axes_(axes) {}
    std::vector<AxisId> of(const std::vector<AxisId>& loops) const {
      std::vector<AxisId> result;
      for (const AxisId loop : loops)
        result.push_back(
            axes_[static_cast<size_t>(std::ranges::find(loops_, loop) - loops_.begin())]);
      return result;
    }
    AxisId reduction(size_t i) const { return axes_[loops_.size() + i]; }

   private:
    const std::vector<AxisId> loops_;
    const std::vector<AxisId> axes_;
  };

  /// Where they are fetched, or copied before.
  void compute_prologues() {
    for (const StageId stage : tile_.prologues.computed)
      steps_.compute_inline(stage);
  }

  /// A copy in shared memory with the factor's own order of dimensions.
  Fetch fetch(const FetchedFactor& factor, const Panel& panel) {
    const auto [copy, axes] = steps_.cache_read(factor.tensor, factor.reader, {}, "shared");
    write_spread(steps_, copy, axes[axes.size() - factor.row_dimension], panel.spread, panel.width);
    return {copy, axes, panel.lanes, panel.is_computed};
  }

  /// A copy in shared memory of what each step reads for a side of the tile: for a window this lays
  /// it out.
  Fetch fetch_joined(language::TensorId tensor, const ir::TensorRead& read, const Panel& panel,
                     StageId sums, const std::vector<AxisId>& batch, const SideLoops& side,
                     const Axes& of_sums, const SumLoops& sum) {
    std::vector<AxisId> layout;
    for (size_t i = 0; i < batch.size(); ++i) {
      if (is_used_in(graph_, read, tile_.sides.batch[i]))
        layout.push_back(of_sums.of({batch[i]})[0]);
    }
    layout.push_back(sum.part);
    const std::vector<AxisId> of_side = of_sums.of(side.in_order);
    const std::vector<AxisId> of_sum = {sum.group, sum.step};
    for (const auto& axes :
         panel.is_along_sum ? std::array{of_side, of_sum} : std::array{of_sum, of_side})
      layout.insert(layout.end(), axes.begin(), axes.end());
    const auto [copy, axes] = steps_.cache_read(tensor, sums, layout, "shared");
    const size_t line = layout.size() - (panel.is_along_sum ? of_sum : of_side).size() - 1;
    write_spread(steps_, copy, axes[line], panel.spread, panel.width);
    return {copy, axes, panel.lanes, panel.is_computed};
  }

  /// All threads of the block, side by side along the last axis.
  void fetch_together(const Fetch& fetch) {
    AxisId all = steps_.fuse(fetch.copy, fetch.axes);
    if (fetch.lanes > 1) {
      const auto [vectors, lane] = steps_.split(fetch.copy, all, fetch.lanes);
      steps_.vectorize(fetch.copy, lane);
      all = vectors;
    }
    const auto [above, x] = steps_.split(fetch.copy, all, 4);
    const auto [rest, y] = steps_.split(fetch.copy, above, 8);
    const auto [outer, z] = steps_.split(fetch.copy, rest, tile_.warps());
    steps_.bind(fetch.copy, z, "threadIdx.z");
    steps_.bind(fetch.copy, y, "threadIdx.y");
    steps_.bind(fetch.copy, x, "threadIdx.x");
  }

  /// The two rows of a lane are 8 apart; of turned bytes they are neighbours.
  SideLoops cut_rows(StageId id, AxisId axis) {
    const auto [tiles, part] = steps_.split(id, axis, tile_.block_rows());
    const auto [warp, of_warp] = steps_.split(id, part, tile_.rows * kRows);
    const auto [products, inside] = steps_.split(id, of_warp, kRows);
    const bool is_turned = rows_.has_turned_bytes;
    const auto [outer, inner] = steps_.split(id, inside, is_turned ? 2 : kRows / 2);
    return {.tiles = tiles,
            .warp = warp,
            .thread = is_turned ? outer : inner,
            .products = {products},
            .own = is_turned ? inner : outer,
            .in_order = {tiles, warp, products, outer, inner}};
  }

  /// The two columns of a lane are neighbours; of turned bytes it has four, two for each of two
  /// products.
  SideLoops cut_columns(StageId id, AxisId axis) {
    const auto [tiles, part] = steps_.split(id, axis, tile_.block_columns());
    const auto [warp, of_warp] = steps_.split(id, part, tile_.columns * kColumns);
    if (!columns_.has_turned_bytes) {
      const auto [products, inside] = steps_.split(id, of_warp, kColumns);
      const auto [pair, neighbour] = steps_.split(id, inside, 2);
      return {.tiles = tiles,
              .warp = warp,
              .thread = pair,
              .products = {products},
              .own = neighbour,
              .in_order = {tiles, warp, products, pair, neighbour}};
    }
    const auto [products, inside] = steps_.split(id, of_warp, 2 * kColumns);
    const auto [pair, four] = steps_.split(id, inside, 4);
    const auto [neighbour, other] = steps_.split(id, four, 2);
    return {.tiles = tiles,
            .warp = warp,
            .thread = pair,
            .products = {products, other},
            .own = neighbour,
            .in_order = {tiles, warp, products, pair, neighbour, other}};
  }

  /// The loops of the product, or of what has its elements.
  Loops cut(StageId id) {
    const auto epilogue = id == tile_.stage ? std::nullopt : tile_.epilogue;
    const auto own = [&](const std::vector<AxisId>& axes) {
      return axes_for(graph_, tile_.stage, epilogue, axes);
    };
    const Sides sides{own(tile_.sides.batch), own(tile_.sides.rows), own(tile_.sides.columns)};
    if (tile_.is_joined) steps_.reorder(id, joined({sides.batch, sides.rows, sides.columns}));
    const SideLoops rows = cut_rows(id, steps_.fuse(id, sides.rows));
    const SideLoops columns = cut_columns(id, steps_.fuse(id, sides.columns));
    const Loops loops{sides.batch, rows, columns};
    steps_.reorder(id, loops.all());
    return loops;
  }

  SumLoops write_sums(StageId sums, const Loops& loops, const Axes& of_sums) {
    const std::vector<AxisId>& reduce = graph_[tile_.stage].reduce;
    std::vector<AxisId> in_order;
    for (const AxisId axis : tile_.sum)
      in_order.push_back(
          of_sums.reduction(static_cast<size_t>(std::ranges::find(reduce, axis) - reduce.begin())));
    if (tile_.sum != reduce) steps_.reorder(sums, in_order);
    const auto [part, inside] = steps_.split(sums, steps_.fuse(sums, in_order), tile_.steps);
    const auto [group, step] = steps_.split(sums, inside, tile_.unit.steps);
    steps_.reorder(sums, joined({{part, group, step}, of_sums.of(loops.own())}));
    return {part, group, step};
  }

  const StageGraph& graph_;
  const MatrixTile& tile_;
  const Panel rows_;
  const Panel columns_;
  StepWriter& steps_;
};

}  // namespace

void write_matrix_tile(const StageGraph& graph, const MatrixTile& tile, StepWriter& steps) {
  MatrixWriter(graph, tile, steps).write();
}

}  // namespace kiln::autoschedule
