// Writes the schedule of a block's tile: copies of both factors in shared memory, sums in
// registers.
//
//   Y[b, m, y, x] = sum[c, r, s](X[b, c, y + r, x + s] * F[m, c, r, s])
//     ->  rows m, columns b.y.x, sum c.r.s, each one loop; X.shared[c.r.s, b.y.x] has what is read
//         for each step and column, as if the image were laid out so (im2col), but only of a tile
#include <algorithm>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/templates/block_tile.h"
#include "compiler/autoschedule/templates/contraction_loops.h"
#include "compiler/autoschedule/templates/fetched_factors.h"
#include "compiler/autoschedule/templates/shared_lines.h"
#include "compiler/ir/build.h"

namespace kiln::autoschedule {
namespace {

constexpr int64_t kMostProducts = 512;  // that stand between two barriers without a loop

/// All threads of the block, side by side along the last axis, each `lanes` neighbours at once.
void fetch_together(StepWriter& steps, StageId copy, const std::vector<AxisId>& axes,
                    int64_t lanes) {
  steps.reorder(copy, axes);
  const AxisId all = steps.fuse_vectors(copy, axes, lanes);
  const auto [rest, x] = steps.split(copy, all, kThreadsOfSide);
  const auto [outer, y] = steps.split(copy, rest, kThreadsOfSide);
  steps.bind(copy, y, "threadIdx.y");
  steps.bind(copy, x, "threadIdx.x");
}

/// Neighbours in memory that a thread fetches at once: 128 bits, where a row of the factor is a
/// multiple of that, so that all of its tiles are aligned; `axes` are those of a plain read.
int64_t lanes_of(const StageGraph& graph, const BlockTile& tile, const ir::TensorRead& read,
                 const std::vector<AxisId>& axes) {
  const int64_t lanes = most_lanes(graph, tile, read);
  if (lanes < 2 || !is_permuted(graph, read, axes)) return 1;
  for (const AxisId axis : axes) {
    if (!is_contiguous_in(graph, read, axis)) continue;
    const bool is_whole = common_width(graph, read, axis) % lanes == 0;
    const bool is_step = axis == graph[tile.stage].reduce[0];
    return is_whole && (!is_step || tile.steps % lanes == 0) ? lanes : 1;
  }
  return 1;
}

/// Loops of one side: tiles, groups of a thread (or the thread's part, for a group of all),
/// threads, and neighbours.
struct SideLoops {
  AxisId tiles = 0;
  std::optional<AxisId> group;
  AxisId thread = 0;
  AxisId own = 0;
};

struct Loops {
  std::vector<AxisId> batch;
  SideLoops rows;
  SideLoops columns;

  std::vector<AxisId> blocks() const { return joined({batch, {rows.tiles, columns.tiles}}); }
  /// Of a thread: groups of rows, a row, groups of columns, a column.
  std::vector<AxisId> own() const {
    std::vector<AxisId> loops;
    for (const SideLoops& side : {rows, columns}) {
      if (side.group) loops.push_back(*side.group);
      loops.push_back(side.own);
    }
    return loops;
  }
  std::vector<AxisId> all() const {
    return joined({blocks(), {rows.thread, columns.thread}, own()});
  }
};

/// Writes the schedule of a tile.
class TileWriter {
 public:
  TileWriter(const StageGraph& graph, const BlockTile& tile, StepWriter& steps)
      : graph_(graph), tile_(tile), steps_(steps) {}

  void write() {
    const StageId id = tile_.stage;
    const Contraction& contraction = tile_.contraction;
    std::vector<Fetch> fetches;
    if (!tile_.is_joined) {
      fetches = {fetch(*contraction.row_factor, contraction.row),
                 fetch(*contraction.column_factor, contraction.column)};
      compute_prologues();
    }
    // The loops give the sums their layout, then they are those of what is stored.
    cut(id);
    const auto [sums, axes] = steps_.cache_write(id, "local");
    if (tile_.epilogue) steps_.compute_inline(id);
    const StageId stored = tile_.epilogue ? tile_.epilogue->stage : id;
    const Loops loops = cut(stored);
    // One axis: the others of a grid end at 65535 blocks.
    steps_.bind(stored, steps_.fuse(stored, loops.blocks()), "blockIdx.x");
    steps_.bind(stored, loops.rows.thread, "threadIdx.y");
    steps_.bind(stored, loops.columns.thread, "threadIdx.x");
    for (const AxisId axis : loops.own())
      if (axis != loops.columns.own) steps_.unroll(stored, axis);
    store_neighbours(graph_, steps_, stored, loops.columns.own,
                     std::min(tile_.own.columns, kGroup));
    steps_.compute_at(sums, stored, loops.columns.thread);
    const Loops of_sums = in_place_of(loops, axes);
    const auto end = axes.begin() + static_cast<std::ptrdiff_t>(loops.all().size());
    const auto [part, step] = write_sums(sums, of_sums, {end, axes.end()});
    if (tile_.is_joined) {
      fetches = {
          fetch_joined(*contraction.row_factor, sums, of_sums, of_sums.rows, part, step),
          fetch_joined(*contraction.column_factor, sums, of_sums, of_sums.columns, part, step)};
      if (tile_.padding) steps_.compute_inline(*tile_.padding);
      compute_prologues();
    }
    // Each iteration stores beside what others still read of the one before: one barrier.
    for (const Fetch& each : fetches) {
      steps_.compute_at(each.copy, sums, part);
      steps_.double_buffer(each.copy);
      fetch_together(steps_, each.copy, each.axes, each.lanes);
    }
    if (may_fetch_early()) steps_.software_pipeline(sums, part);
  }

 private:
  struct Fetch {
    StageId copy;
    std::vector<AxisId> axes;  // neighbours of the source last
    int64_t lanes = 1;         // of them that a thread fetches at once
  };

  /// Where they are fetched.
  void compute_prologues() {
    for (const StageId stage : tile_.prologues.computed)
      steps_.compute_inline(stage);
  }

  /// The lines of a transposed copy: threads store what they have fetched along the sum, each
  /// element in another line, and read vectors along a line. None swizzled, as those are at
  /// constants from each other, which instructions have.
  void spread_lines(const ir::TensorRead& read, StageId copy, AxisId step, int64_t side,
                    int64_t lanes) {
    const int64_t vectors = std::max<int64_t>(tile_.steps / lanes, 1);
    analysis::LinearLayout::Input stored{.name = "lane", .bits = {}};
    analysis::LinearLayout::Input loaded{.name = "lane", .bits = {}};
    for (int64_t thread = 1; thread < ir::kWarp; thread *= 2) {
      const bool is_along_sum = thread < vectors;
      stored.bits.push_back({is_along_sum ? thread * lanes : 0,
                             is_along_sum ? 0 : std::max<int64_t>(thread / vectors, 1)});
      loaded.bits.push_back({0, thread < kThreadsOfSide ? thread * kGroup : 0});
    }
    const std::vector<analysis::LinearLayout::Output> places = {{"line", 6}, {"element", 7}};
    const int64_t bytes = size_of(read.type.element);
    const Spread spread = best_spread(
        {.lines = tile_.steps,
         .width = kThreadsOfSide * side,
         .element_bytes = bytes,
         .touches = {{{{stored}, places}, bytes},
                     {{{loaded}, places}, std::min(kGroup * bytes, kVectorBytesOfThread)}},
         .may_swizzle = false});
    write_spread(steps_, copy, step, spread, kBanks);
  }

  /// A copy in shared memory. Where the factor lies along the sum it is transposed.
  Fetch fetch(const ir::TensorRead& read, AxisId side) {
    const Stage& stage = graph_[tile_.stage];
    const language::TensorId tensor = {read.stage, read.output};
    std::vector<AxisId> layout = tile_.batch;
    std::erase_if(layout, [&](AxisId axis) { return !is_used_in(graph_, read, axis); });
    layout.insert(layout.end(), {stage.reduce[0], side});
    const bool is_transposed = stage.reduce.size() == 1 && is_permuted(graph_, read, layout) &&
                               is_contiguous_in(graph_, read, stage.reduce[0]);
    const auto [copy, axes] = steps_.cache_read(
        tensor, tile_.stage, is_transposed ? layout : std::vector<AxisId>{}, "shared");
    const int64_t lanes = lanes_of(graph_, tile_, read, layout);
    if (!is_transposed) return {copy, axes, lanes};
    const bool is_of_rows = &read == tile_.contraction.row_factor;
    spread_lines(read, copy, axes[axes.size() - 2], is_of_rows ? tile_.own.rows : tile_.own.columns,
                 lanes);
    std::vector<AxisId> order = axes;
    std::swap(order[order.size() - 2], order.back());
    return {copy, order, lanes};
  }

  /// A copy in shared memory of what each step reads for a side of the tile: for a window this lays
  /// it out.
  Fetch fetch_joined(const ir::TensorRead& read, StageId sums, const Loops& loops,
                     const SideLoops& side, AxisId part, AxisId step) {
    std::vector<AxisId> layout;
    for (size_t i = 0; i < tile_.batch.size(); ++i) {
      if (is_used_in(graph_, read, tile_.batch[i])) layout.push_back(loops.batch[i]);
    }
    layout.insert(layout.end(), {part, step, side.tiles});
    if (side.group) layout.push_back(*side.group);
    layout.insert(layout.end(), {side.thread, side.own});
    const auto [copy, axes] = steps_.cache_read({read.stage, read.output}, sums, layout, "shared");
    const int64_t lanes = most_lanes(graph_, tile_, read);
    const auto may_be_vectors = [&](const std::vector<AxisId>& along) {
      return lanes > 1 && elements_in_order(graph_, read, along) % lanes == 0;
    };
    const std::vector<AxisId>& reduce = graph_[tile_.stage].reduce;
    const bool is_of_rows = &side == &loops.rows;
    const std::vector<AxisId>& of_side = is_of_rows ? tile_.sides.rows : tile_.sides.columns;
    // Places of a window lie along both; the side has more of them.
    if (is_contiguous_in(graph_, read, of_side.back()) ||
        !is_contiguous_in(graph_, read, reduce.back())) {
      const int64_t own = is_of_rows ? tile_.own.rows : tile_.own.columns;
      const bool is_wide = may_be_vectors(of_side) && std::min(kGroup, own) % lanes == 0;
      return {copy, axes, is_wide ? lanes : 1};
    }
    const auto at = std::ranges::find(layout, step) - layout.begin();
    const AxisId line = axes[static_cast<size_t>(at)];
    const bool is_wide = may_be_vectors(reduce) && tile_.steps % lanes == 0;
    spread_lines(read, copy, line, is_of_rows ? tile_.own.rows : tile_.own.columns,
                 is_wide ? lanes : 1);
    std::vector<AxisId> order = axes;
    std::erase(order, line);
    order.push_back(line);
    return {copy, order, is_wide ? lanes : 1};
  }

  /// Whether what the next iteration needs can wait in registers: of one value a place, where sizes
  /// are known, without which the code of a fetch is as long as that of the products, and where no
  /// window makes it so.
  bool may_fetch_early() const {
    const BlockProduct product = product_of(graph_, tile_);
    const Contraction& contraction = tile_.contraction;
    return product.rows * product.columns * product.steps > 0 &&
           (tile_.is_joined || graph_[tile_.stage].reduce.size() == 1) &&
           graph_[contraction.row_factor->stage].types.size() == 1 &&
           graph_[contraction.column_factor->stage].types.size() == 1;
  }

  SideLoops cut_side(StageId id, AxisId axis, int64_t own) {
    const auto [tiles, part] = steps_.split(id, axis, kThreadsOfSide * own);
    std::optional<AxisId> group;
    AxisId rest = part;
    if (own > kGroup) {
      const auto [groups, in_group] = steps_.split(id, part, kThreadsOfSide * kGroup);
      group = groups;
      rest = in_group;
    }
    const auto [thread, neighbour] = steps_.split(id, rest, std::min(own, kGroup));
    return {tiles, group, thread, neighbour};
  }

  /// The loops of the product, or of what has its elements.
  Loops cut(StageId id) {
    const auto epilogue = id == tile_.stage ? std::nullopt : tile_.epilogue;
    const auto own = [&](const std::vector<AxisId>& axes) {
      return axes_for(graph_, tile_.stage, epilogue, axes);
    };
    const std::vector<AxisId> batch = own(tile_.batch);
    std::vector<AxisId> row = own({tile_.contraction.row});
    std::vector<AxisId> column = own({tile_.contraction.column});
    if (tile_.is_joined) {
      row = own(tile_.sides.rows);
      column = own(tile_.sides.columns);
      steps_.reorder(id, joined({batch, row, column}));
    }
    const SideLoops rows = cut_side(id, steps_.fuse(id, row), tile_.own.rows);
    const SideLoops columns = cut_side(id, steps_.fuse(id, column), tile_.own.columns);
    const Loops loops{batch, rows, columns};
    steps_.reorder(id, loops.all());
    return loops;
  }

  /// The axes of the sums that stand for these loops, in the same order.
  static Loops in_place_of(const Loops& loops, const std::vector<AxisId>& axes) {
    const std::vector<AxisId> all = loops.all();
    const auto of = [&](AxisId loop) {
      return axes[static_cast<size_t>(std::ranges::find(all, loop) - all.begin())];
    };
    const auto side = [&](const SideLoops& given) {
      return SideLoops{of(given.tiles),
                       given.group ? std::optional(of(*given.group)) : std::nullopt,
                       of(given.thread), of(given.own)};
    };
    Loops result{{}, side(loops.rows), side(loops.columns)};
    for (const AxisId axis : loops.batch)
      result.batch.push_back(of(axis));
    return result;
  }

  /// The loop between the barriers, and that over its steps.
  std::pair<AxisId, AxisId> write_sums(StageId sums, const Loops& of_sums,
                                       const std::vector<AxisId>& reduce) {
    std::vector<AxisId> window(reduce.begin() + 1, reduce.end());
    AxisId sum = reduce[0];
    if (tile_.is_joined) {
      sum = steps_.fuse(sums, reduce);
      window.clear();
    }
    const std::vector<AxisId> own = of_sums.own();
    const auto [part, step] = steps_.split(sums, sum, tile_.steps);
    steps_.reorder(sums, joined({{part, step}, window, own}));
    const int64_t products = tile_.own.rows * tile_.own.columns * tile_.steps;
    if (window.empty() && products <= kMostProducts) steps_.unroll(sums, step);
    for (const AxisId axis : own)
      steps_.unroll(sums, axis);
    return {part, step};
  }

  const StageGraph& graph_;
  const BlockTile& tile_;
  StepWriter& steps_;
};

}  // namespace

void write_block_tile(const StageGraph& graph, const BlockTile& tile, StepWriter& steps) {
  TileWriter(graph, tile, steps).write();
}

}  // namespace kiln::autoschedule
