// Tiles of a contraction for blocks of 16 x 16 threads, after te's tutorials for GPUs and Volkov
// and Demmel, "Benchmarking GPUs to tune dense linear algebra", SC 2008: sums in registers, factors
// in shared memory.
//
//   C[i, j] = sum[k](A[i, k] * B[k, j])
//     ->  blockIdx: tiles of 64 x 64; k in steps of 16:
//           threads fetch A[64 rows, 16] and B[16, 64 columns] to shared memory
//           each thread adds 4 x 4 products for each of the 16
//
// The order of the sum stays that of the definition.
#include "compiler/autoschedule/templates/block_tiles.h"

#include <algorithm>

#include "compiler/analysis/affine.h"
#include "compiler/ir/build.h"

namespace kiln::autoschedule {
namespace {

constexpr int64_t kThreads = 16;      // along each side of a tile
constexpr int64_t kTile = 64;         // elements along each side
constexpr int64_t kLeast = 32;        // of an axis that is cut into tiles
constexpr int64_t kMostSteps = 64;    // of the reduction between two barriers
constexpr int64_t kBytes = 24 << 10;  // of shared memory: two blocks have room on every device

/// How a contraction is cut.
struct BlockTile {
  StageId stage = 0;
  Contraction contraction;
  std::vector<AxisId> batch;  // data axes that are neither row nor column
  int64_t steps = 0;          // of the first reduction axis at once
};

bool is_short(const StageGraph& graph, AxisId axis) {
  return constant_extent(graph, axis).value_or(kLeast) < kLeast;
}

/// How many values of the axis a block needs at once; nothing where that is not known.
std::optional<int64_t> part_of(const StageGraph& graph, const BlockTile& tile, AxisId axis) {
  const Stage& stage = graph[tile.stage];
  const std::optional<int64_t> extent = constant_extent(graph, axis);
  if (axis == tile.contraction.row || axis == tile.contraction.column)
    return std::min(extent.value_or(kTile), kTile);
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
  return bytes <= kBytes;
}

/// What a copy can be made of: a tensor with memory of its own.
bool may_be_fetched(const StageGraph& graph, const ir::TensorRead& read) {
  return graph[read.stage].attach.kind == schedule::Attach::Kind::Root &&
         graph[read.stage].kind != Stage::Kind::Scan && !graph[read.stage].is_touched;
}

std::optional<BlockTile> tile_of(const StageGraph& graph, StageId id) {
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
  int64_t window = 1;
  for (size_t i = 1; i < stage.reduce.size(); ++i) {
    const auto extent = constant_extent(graph, stage.reduce[i]);
    if (!extent || *extent > kMostSteps) return std::nullopt;
    window *= std::max<int64_t>(*extent, 1);
  }
  for (tile.steps = 16; tile.steps > 0; tile.steps /= 2) {
    if (tile.steps * window <= kMostSteps && fits(graph, tile)) return tile;
  }
  return std::nullopt;
}

/// All threads of the block, side by side along the last dimension.
void fetch_together(StepWriter& steps, StageId copy, const std::vector<AxisId>& axes) {
  const AxisId all = steps.fuse(copy, axes);
  const auto [rest, x] = steps.split(copy, all, kThreads);
  const auto [outer, y] = steps.split(copy, rest, kThreads);
  steps.bind(copy, y, "threadIdx.y");
  steps.bind(copy, x, "threadIdx.x");
}

void write_tile(const StageGraph& graph, const BlockTile& tile, StepWriter& steps) {
  const StageId id = tile.stage;
  const Contraction& contraction = tile.contraction;
  const auto fetch = [&](const ir::TensorRead& read) {
    return steps.cache_read({read.stage, read.output}, id, {}, "shared");
  };
  const auto [rows, rows_axes] = fetch(*contraction.row_factor);
  const auto [columns, columns_axes] = fetch(*contraction.column_factor);
  const auto made = steps.cache_write(id, "local");
  const StageId sums = made.first;
  const std::vector<AxisId>& sums_axes = made.second;

  const auto [row_tile, row] = steps.split(id, contraction.row, kTile);
  const auto [column_tile, column] = steps.split(id, contraction.column, kTile);
  const auto [y, own_row] = steps.split(id, row, kTile / kThreads);
  const auto [x, own_column] = steps.split(id, column, kTile / kThreads);
  std::vector<AxisId> blocks = tile.batch;
  blocks.insert(blocks.end(), {row_tile, column_tile});
  std::vector<AxisId> order = blocks;
  order.insert(order.end(), {y, x, own_row, own_column});
  steps.reorder(id, order);
  // One axis: the others of a grid end at 65535 blocks.
  steps.bind(id, steps.fuse(id, blocks), "blockIdx.x");
  steps.bind(id, y, "threadIdx.y");
  steps.bind(id, x, "threadIdx.x");
  steps.unroll(id, own_row);
  steps.unroll(id, own_column);

  // Of the sums: data axes, then those of the reduction, each in the definition's order.
  const std::vector<AxisId>& data = graph[id].data;
  const auto of_sums = [&](AxisId axis) {
    return sums_axes[static_cast<size_t>(std::ranges::find(data, axis) - data.begin())];
  };
  const std::vector<AxisId> reduce(sums_axes.begin() + static_cast<long>(data.size()),
                                   sums_axes.end());
  steps.compute_at(sums, id, x);
  const auto [part, step] = steps.split(sums, reduce[0], tile.steps);
  std::vector<AxisId> loops = {part, step};
  loops.insert(loops.end(), reduce.begin() + 1, reduce.end());
  loops.insert(loops.end(), {of_sums(contraction.row), of_sums(contraction.column)});
  steps.reorder(sums, loops);
  steps.unroll(sums, of_sums(contraction.row));
  steps.unroll(sums, of_sums(contraction.column));
  steps.compute_at(rows, sums, part);
  steps.compute_at(columns, sums, part);
  fetch_together(steps, rows, rows_axes);
  fetch_together(steps, columns, columns_axes);
}

}  // namespace

bool has_block_tiles(const StageGraph& graph, StageId id) { return tile_of(graph, id).has_value(); }

std::optional<Sketch> block_tile_sketch(const Chooser& chooser, StageId id) {
  const StageGraph& graph = chooser.graph;
  const std::optional<BlockTile> tile = tile_of(graph, id);
  if (!tile) return std::nullopt;
  return Sketch{.name = "a tile a block",
                .parameters = {},
                .write = [&graph, tile = *tile](StepWriter& steps, const Values&) {
                  write_tile(graph, tile, steps);
                }};
}

}  // namespace kiln::autoschedule
