// Tiles of a contraction for blocks of 16 x 16 threads, after te's tutorials for GPUs and Volkov
// and Demmel, "Benchmarking GPUs to tune dense linear algebra", SC 2008: sums in registers, factors
// in shared memory.
//
//   C[i, j] = sum[k](A[i, k] * B[k, j])
//     ->  blockIdx: tiles of 128 x 128; k in steps of 8:
//           threads fetch A[128 rows, 8] and B[8, 128 columns] to shared memory
//           each thread adds 8 x 8 products for each of the 8
//
// A thread's rows and columns are groups of four, 64 apart, so that the threads of a warp read
// shared memory side by side, 128 bits each; what lies along k is transposed on its way there. The
// order of the sum stays that of the definition. Which tile is taken is predicted
// (block_tile_cost.cc).
#include "compiler/autoschedule/templates/block_tiles.h"

#include <algorithm>

#include <fmt/format.h>

#include "compiler/analysis/affine.h"
#include "compiler/autoschedule/templates/block_tile_cost.h"
#include "compiler/autoschedule/templates/contraction_loops.h"
#include "compiler/ir/build.h"

namespace kiln::autoschedule {
namespace {

constexpr int64_t kLeast = 32;           // of an axis that is cut into tiles
constexpr int64_t kMostSteps = 64;       // of the reduction between two barriers
constexpr int64_t kBytes = 24 << 10;     // of shared memory: two blocks have room on every device
constexpr int64_t kCopies = 2;           // of both factors, for iterations that take turns
constexpr int64_t kGroup = 4;            // neighbouring sums of a thread: 128 bits of float32
constexpr int64_t kBanks = 32;           // of shared memory, four bytes each
constexpr int64_t kSumBytes = 256;       // of a thread's sums: a quarter of its registers
constexpr int64_t kMostProducts = 512;   // that stand between two barriers without a loop
constexpr ThreadTile kAnyTile = {4, 4};  // where sizes are not known
constexpr ThreadTile kTiles[] = {{4, 4}, {8, 4}, {4, 8}, {8, 8}};

/// How a contraction is cut.
struct BlockTile {
  StageId stage = 0;
  Contraction contraction;
  std::vector<AxisId> batch;  // data axes that are neither row nor column
  int64_t window = 1;         // products of all reduction axes but the first
  int64_t steps = 0;          // of the first reduction axis at once
  ThreadTile own = kAnyTile;  // of a thread
};

bool is_short(const StageGraph& graph, AxisId axis) {
  return constant_extent(graph, axis).value_or(kLeast) < kLeast;
}

/// How many values of the axis a block needs at once; nothing where that is not known.
std::optional<int64_t> part_of(const StageGraph& graph, const BlockTile& tile, AxisId axis) {
  const Stage& stage = graph[tile.stage];
  const std::optional<int64_t> extent = constant_extent(graph, axis);
  if (axis == tile.contraction.row || axis == tile.contraction.column) {
    const bool is_row = axis == tile.contraction.row;
    const int64_t side = kThreadsOfSide * (is_row ? tile.own.rows : tile.own.columns);
    return std::min(extent.value_or(side), side);
  }
  if (axis == stage.reduce[0]) return std::min(extent.value_or(tile.steps), tile.steps);
  return graph.axes[axis].kind == schedule::AxisKind::Data ? 1 : extent;
}

/// Elements of a factor that a block needs at once; nothing where they are no box of constant size.
std::optional<int64_t> elements_of(const StageGraph& graph, const BlockTile& tile,
                                   const ir::TensorRead& read) {
  const Stage& stage = graph[tile.stage];
  int64_t elements = 1;
  for (const ir::Expr& index : read.indices) {
    int64_t length = 1;
    for (const std::vector<AxisId>* axes : {&stage.data, &stage.reduce}) {
      for (const AxisId axis : *axes) {
        const auto stride = analysis::stride_of(index, graph.axes[axis].value);
        const auto part = part_of(graph, tile, axis);
        if (!stride || *stride < 0) return std::nullopt;
        if (*stride > 0 && !part) return std::nullopt;
        if (*stride > 0) length += *stride * (*part - 1);
      }
    }
    elements *= std::min(length, kBytes);
    if (elements > kBytes) return std::nullopt;
  }
  return elements;
}

bool fits(const StageGraph& graph, const BlockTile& tile) {
  int64_t bytes = 0;
  for (const ir::TensorRead* read : {tile.contraction.row_factor, tile.contraction.column_factor}) {
    const std::optional<int64_t> elements = elements_of(graph, tile, *read);
    if (!elements) return false;
    bytes += *elements * size_of(read->type.element);
  }
  return kCopies * bytes <= kBytes;
}

/// What a copy can be made of: a tensor with memory of its own.
bool may_be_fetched(const StageGraph& graph, const ir::TensorRead& read) {
  return graph[read.stage].attach.kind == schedule::Attach::Kind::Root &&
         graph[read.stage].kind != Stage::Kind::Scan && !graph[read.stage].is_touched;
}

/// What all tiles of the stage have in common; nothing where it has none.
std::optional<BlockTile> any_tile_of(const StageGraph& graph, StageId id) {
  const Stage& stage = graph[id];
  const bool is_plain = stage.kind == Stage::Kind::Compute && stage.time_dimension < 0 &&
                        stage.conditions.empty() && reductions_inside(graph, id).empty();
  if (!is_plain) return std::nullopt;
  const auto contraction = find_contraction(graph, id);
  if (!contraction || !ir::as<ir::Reduce>(stage.bodies[0])->init.empty()) return std::nullopt;
  const ir::TensorRead& rows = *contraction->row_factor;
  const ir::TensorRead& columns = *contraction->column_factor;
  // One tensor has one copy, which would have to hold the parts of both.
  if (rows.stage == columns.stage || !may_be_fetched(graph, rows) ||
      !may_be_fetched(graph, columns)) {
    return std::nullopt;
  }
  if (is_short(graph, contraction->row) || is_short(graph, contraction->column))
    return std::nullopt;
  BlockTile tile{.stage = id, .contraction = *contraction, .batch = {}};
  for (const AxisId axis : stage.data) {
    if (axis == contraction->row || axis == contraction->column) continue;
    // Of a fused loop with other extents it is not proved that a block has one value of each axis.
    const ir::Expr& extent = graph.axes[axis].extent;
    if (!ir::as_const_int(extent) && ir::as<ir::Var>(extent) == nullptr) return std::nullopt;
    tile.batch.push_back(axis);
  }
  for (size_t i = 1; i < stage.reduce.size(); ++i) {
    const auto extent = constant_extent(graph, stage.reduce[i]);
    if (!extent || *extent > kMostSteps) return std::nullopt;
    tile.window *= std::max<int64_t>(*extent, 1);
  }
  return tile;
}

int64_t sum_bytes(const StageGraph& graph, const BlockTile& tile) {
  return tile.own.rows * tile.own.columns * size_of(graph[tile.stage].bodies[0]->type.element);
}

/// The tile with as many steps at once as there is room for; nothing where there is none.
std::optional<BlockTile> with_steps(const StageGraph& graph, BlockTile tile) {
  if (tile.own != kAnyTile && sum_bytes(graph, tile) > kSumBytes) return std::nullopt;
  // More would only make longer code of the large tiles.
  const int64_t most = tile.own == kAnyTile ? 16 : 8;
  for (tile.steps = most; tile.steps > 0; tile.steps /= 2) {
    if (tile.steps * tile.window <= kMostSteps && fits(graph, tile)) return tile;
  }
  return std::nullopt;
}

/// What is not known makes 0 of the rows.
BlockProduct product_of(const StageGraph& graph, const BlockTile& tile) {
  const Contraction& contraction = tile.contraction;
  const auto extent = [&](AxisId axis) { return constant_extent(graph, axis).value_or(0); };
  BlockProduct product{.rows = extent(contraction.row),
                       .columns = extent(contraction.column),
                       .steps = extent(graph[tile.stage].reduce[0]) * tile.window,
                       .element_bytes = size_of(contraction.row_factor->type.element)};
  for (const AxisId axis : tile.batch)
    product.batch *= std::max<int64_t>(extent(axis), 1);
  return product;
}

/// The tiles that fit, the one that is predicted to be fastest first.
std::vector<BlockTile> tiles_of(const Chooser& chooser, StageId id) {
  const StageGraph& graph = chooser.graph;
  std::vector<BlockTile> tiles;
  const std::optional<BlockTile> any = any_tile_of(graph, id);
  if (!any) return tiles;
  const BlockProduct product = product_of(graph, *any);
  const bool is_known = product.rows * product.columns * product.steps > 0;
  for (const ThreadTile& own : kTiles) {
    BlockTile tile = *any;
    tile.own = own;
    if (!is_known && own != kAnyTile) continue;
    if (const auto found = with_steps(graph, tile)) tiles.push_back(*found);
  }
  const GpuMachine& machine = gpu_machine(chooser.arch);
  std::ranges::stable_sort(tiles, {}, [&](const BlockTile& tile) {
    return is_known ? block_cycles(product, tile.own, machine) : 0;
  });
  return tiles;
}

/// All threads of the block, side by side along the last axis, each `lanes` neighbours at once.
void fetch_together(StepWriter& steps, StageId copy, std::vector<AxisId> axes, int64_t lanes) {
  steps.reorder(copy, axes);
  if (lanes > 1) {
    const auto [vectors, lane] = steps.split(copy, axes.back(), lanes);
    steps.vectorize(copy, lane);
    axes.back() = vectors;
  }
  const AxisId all = steps.fuse(copy, axes);
  const auto [rest, x] = steps.split(copy, all, kThreadsOfSide);
  const auto [outer, y] = steps.split(copy, rest, kThreadsOfSide);
  steps.bind(copy, y, "threadIdx.y");
  steps.bind(copy, x, "threadIdx.x");
}

/// Writes the schedule of a tile.
class TileWriter {
 public:
  TileWriter(const StageGraph& graph, const BlockTile& tile, StepWriter& steps)
      : graph_(graph), tile_(tile), steps_(steps) {}

  void write() {
    const Contraction& contraction = tile_.contraction;
    const Fetch rows = fetch(*contraction.row_factor, contraction.row);
    const Fetch columns = fetch(*contraction.column_factor, contraction.column);
    // The loops give the sums their layout, then they are the copy's.
    const size_t own = cut().own.size();
    const auto [sums, sums_axes] = steps_.cache_write(tile_.stage, "local");
    const Loops loops = cut();
    // One axis: the others of a grid end at 65535 blocks.
    steps_.bind(tile_.stage, steps_.fuse(tile_.stage, loops.blocks), "blockIdx.x");
    steps_.bind(tile_.stage, loops.y, "threadIdx.y");
    steps_.bind(tile_.stage, loops.x, "threadIdx.x");
    for (const AxisId axis : loops.own)
      steps_.unroll(tile_.stage, axis);
    const size_t data = loops.blocks.size() + 2;
    const auto begin = sums_axes.begin() + static_cast<std::ptrdiff_t>(data);
    const auto end = begin + static_cast<std::ptrdiff_t>(own);
    const AxisId part = write_sums(sums, loops.x, {begin, end}, {end, sums_axes.end()});
    // Each iteration stores beside what others still read of the one before: one barrier.
    for (const Fetch& each : {rows, columns}) {
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
  struct Loops {
    std::vector<AxisId> blocks;
    AxisId y = 0;
    AxisId x = 0;
    std::vector<AxisId> own;  // of a thread: groups of rows, a row, groups of columns, a column
  };

  /// A copy in shared memory. Where the factor lies along the sum it is transposed, and the lines
  /// are four banks further apart each, so that neither side of it meets in a bank.
  Fetch fetch(const ir::TensorRead& read, AxisId side) {
    const Stage& stage = graph_[tile_.stage];
    const language::TensorId tensor = {read.stage, read.output};
    std::vector<AxisId> layout = tile_.batch;
    std::erase_if(layout, [&](AxisId axis) { return !is_used_in(graph_, read, axis); });
    layout.insert(layout.end(), {stage.reduce[0], side});
    const bool is_transposed = stage.reduce.size() == 1 && only_reorders(graph_, read, layout) &&
                               is_contiguous_in(graph_, read, stage.reduce[0]);
    const auto [copy, axes] = steps_.cache_read(
        tensor, tile_.stage, is_transposed ? layout : std::vector<AxisId>{}, "shared");
    const int64_t lanes = lanes_of(read, layout);
    if (!is_transposed) return {copy, axes, lanes};
    const AxisId step = axes[axes.size() - 2];
    const int64_t pad = std::max<int64_t>(16 / size_of(read.type.element), 1);
    steps_.storage_align(copy, step, kBanks, std::min(pad, kBanks - 1));
    std::vector<AxisId> order = axes;
    std::swap(order[order.size() - 2], order.back());
    return {copy, order, lanes};
  }

  /// 128 bits, where a row of the factor is a multiple of that, so that all of its tiles are
  /// aligned; `axes` are those of a plain read.
  int64_t lanes_of(const ir::TensorRead& read, const std::vector<AxisId>& axes) const {
    const int64_t lanes = 16 / size_of(read.type.element);
    if (lanes < 2 || !only_reorders(graph_, read, axes)) return 1;
    for (const AxisId axis : axes) {
      if (!is_contiguous_in(graph_, read, axis)) continue;
      const bool is_whole = constant_extent(graph_, axis).value_or(1) % lanes == 0;
      const bool is_step = axis == graph_[tile_.stage].reduce[0];
      return is_whole && (!is_step || tile_.steps % lanes == 0) ? lanes : 1;
    }
    return 1;
  }

  /// Whether what the next iteration needs can wait in registers: of one value a place, where sizes
  /// are known, without which the code of a fetch is as long as that of the products, and where no
  /// window makes it so.
  bool may_fetch_early() const {
    const BlockProduct product = product_of(graph_, tile_);
    const Contraction& contraction = tile_.contraction;
    return product.rows * product.columns * product.steps > 0 &&
           graph_[tile_.stage].reduce.size() == 1 &&
           graph_[contraction.row_factor->stage].types.size() == 1 &&
           graph_[contraction.column_factor->stage].types.size() == 1;
  }

  /// The axes of one side: tiles, groups of a thread (or the thread's part, for a group of all),
  /// threads, and neighbours.
  struct Side {
    AxisId tiles;
    std::optional<AxisId> group;
    AxisId thread;
    AxisId own;
  };
  Side cut_side(AxisId axis, int64_t own) {
    const StageId id = tile_.stage;
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

  Loops cut() {
    const Side rows = cut_side(tile_.contraction.row, tile_.own.rows);
    const Side columns = cut_side(tile_.contraction.column, tile_.own.columns);
    Loops loops{.blocks = tile_.batch, .y = rows.thread, .x = columns.thread, .own = {}};
    loops.blocks.insert(loops.blocks.end(), {rows.tiles, columns.tiles});
    for (const Side& side : {rows, columns}) {
      if (side.group) loops.own.push_back(*side.group);
      loops.own.push_back(side.own);
    }
    std::vector<AxisId> order = loops.blocks;
    order.insert(order.end(), {loops.y, loops.x});
    order.insert(order.end(), loops.own.begin(), loops.own.end());
    steps_.reorder(tile_.stage, order);
    return loops;
  }

  /// The loop between the barriers.
  AxisId write_sums(StageId sums, AxisId thread, const std::vector<AxisId>& own,
                    const std::vector<AxisId>& reduce) {
    steps_.compute_at(sums, tile_.stage, thread);
    const auto [part, step] = steps_.split(sums, reduce[0], tile_.steps);
    std::vector<AxisId> loops = {part, step};
    loops.insert(loops.end(), reduce.begin() + 1, reduce.end());
    loops.insert(loops.end(), own.begin(), own.end());
    steps_.reorder(sums, loops);
    const int64_t products = tile_.own.rows * tile_.own.columns * tile_.steps;
    if (reduce.size() == 1 && products <= kMostProducts) steps_.unroll(sums, step);
    for (const AxisId axis : own)
      steps_.unroll(sums, axis);
    return part;
  }

  const StageGraph& graph_;
  const BlockTile& tile_;
  StepWriter& steps_;
};

}  // namespace

bool has_block_tiles(const StageGraph& graph, StageId id) {
  const std::optional<BlockTile> any = any_tile_of(graph, id);
  return any && with_steps(graph, *any).has_value();
}

std::vector<Sketch> block_tile_sketches(const Chooser& chooser, StageId id) {
  std::vector<Sketch> sketches;
  for (const BlockTile& tile : tiles_of(chooser, id)) {
    sketches.push_back(
        {.name = fmt::format("a tile a block, {} x {} a thread", tile.own.rows, tile.own.columns),
         .parameters = {},
         .write = [&graph = chooser.graph, tile](StepWriter& steps, const Values&) {
           TileWriter(graph, tile, steps).write();
         }});
  }
  return sketches;
}

}  // namespace kiln::autoschedule
