// Tiles of a contraction for tensor cores, as CUTLASS's kernels for sm_80 have them: factors in
// shared memory, a part of the tile for each warp, sums in registers.
//
//   C[i, j] = sum[k](A[i, k] * B[k, j])
//     ->  blockIdx: tiles of 256 x 128; k in steps of 64:
//           threads copy A[256 rows, 64] and B[64, 128 columns], 16 bytes at once, two steps ahead
//           a warp adds 64 x 64, by products of 16 x 8 with 16 steps each
//
// Of 8-bit factors there are twice as many steps of everything, in as many bytes.
//
// Where a product has too few of those for the GPU, or rows that hardware cannot copy in the
// background, tiles are smaller, and fetched when they are needed: other blocks of the
// multiprocessor work meanwhile.
//
// The loops are ordered as the sums lie in the lanes of mma.sync (codegen/cuda_matrix.h), which is
// what makes them matrix instructions. Rows in shared memory are 16 bytes longer than they need
// to be, so that the eight of them that ldmatrix reads at once begin in different banks.
#include "compiler/autoschedule/templates/matrix_tiles.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "compiler/autoschedule/templates/contraction_loops.h"
#include "compiler/autoschedule/templates/gpu_machine.h"
#include "compiler/ir/build.h"
#include "compiler/ir/gpu_arch.h"
#include "compiler/ir/matrix_unit.h"

namespace kiln::autoschedule {
namespace {

constexpr int64_t kRows = ir::kMatrixRows;
constexpr int64_t kColumns = ir::kMatrixColumns;
constexpr int64_t kLineBytes = 128;  // of each row of a tile
constexpr int64_t kLeast = 64;       // of an axis that is cut into tiles
// A tensor core of sm_80 multiplies 16 x 8 x 16, of 8 bits 16 x 8 x 32, in eight cycles (NVIDIA,
// "A100 Tensor Core GPU Architecture"), and there are four to a multiprocessor.
constexpr double kCycles = 8;
constexpr double kCores = 4;
// One block alone waits at its barriers with nobody to take its turn.
constexpr double kAlone = 1.5;
// Memories of a tile that is copied in the background: one is read while two are filled.
constexpr int64_t kStages = 3;
// Parts of a sum that are worth it: the first ones of a block wait for all that is copied.
constexpr int64_t kLeastParts = 4;

struct MatrixTile {
  StageId stage = 0;
  Contraction contraction;
  ir::MatrixUnit unit;
  DType type = DType::Float16;  // of a factor; the other has as many bits
  std::vector<AxisId> batch;    // data axes that are neither row nor column
  int64_t warps_down = 2;
  int64_t warps_across = 2;
  int64_t rows = 4;  // products of a warp along each side
  int64_t columns = 8;
  int64_t steps = 0;   // of the sum at once
  int64_t stages = 1;  // memories of the factors

  int64_t block_rows() const { return warps_down * rows * kRows; }
  int64_t block_columns() const { return warps_across * columns * kColumns; }
  int64_t warps() const { return warps_down * warps_across; }
  int64_t lanes() const { return kVectorBytesOfThread / size_of(type); }  // fetched at once
};

bool is_long(const StageGraph& graph, AxisId axis) {
  return constant_extent(graph, axis).value_or(kLeast) >= kLeast;
}

bool may_be_fetched(const StageGraph& graph, const ir::TensorRead& read,
                    const std::vector<AxisId>& axes) {
  const Stage& source = graph[read.stage];
  std::vector<AxisId> used = axes;
  std::erase_if(used, [&](AxisId axis) { return !is_used_in(graph, read, axis); });
  return source.attach.kind == schedule::Attach::Kind::Root && source.kind != Stage::Kind::Scan &&
         !source.is_touched && only_reorders(graph, read, used);
}

/// What computes the products of a sum; nothing where they are rounded before they are added up,
/// or where the order of the sum is to be kept.
std::optional<ir::MatrixUnit> unit_of(const Chooser& chooser, const Stage& stage,
                                      const Contraction& contraction) {
  const auto unit = ir::matrix_unit(contraction.row_factor->type.element,
                                    contraction.column_factor->type.element);
  const bool serves = unit && ir::has_matrix_unit(chooser.arch, *unit) &&
                      (unit->is_exact || !chooser.options.strict) && stage.types[0] == unit->sums &&
                      summed_product(stage)->type.element == unit->sums;
  return serves ? unit : std::nullopt;
}

/// What all tiles of the stage have in common; nothing where it has none.
std::optional<MatrixTile> any_tile_of(const Chooser& chooser, StageId id) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  const bool is_plain = stage.kind == Stage::Kind::Compute && stage.time_dimension < 0 &&
                        stage.conditions.empty() && reductions_inside(graph, id).empty() &&
                        stage.reduce.size() == 1;
  if (!is_plain) return std::nullopt;
  const auto contraction = find_contraction(graph, id);
  if (!contraction || !ir::as<ir::Reduce>(stage.bodies[0])->init.empty()) return std::nullopt;
  const auto unit = unit_of(chooser, stage, *contraction);
  if (!unit) return std::nullopt;
  MatrixTile tile{.stage = id,
                  .contraction = *contraction,
                  .unit = *unit,
                  .type = contraction->row_factor->type.element,
                  .batch = {}};
  tile.steps = kLineBytes / size_of(tile.type);
  std::vector<AxisId> axes = stage.data;
  axes.push_back(stage.reduce[0]);
  const ir::TensorRead& rows = *contraction->row_factor;
  const ir::TensorRead& columns = *contraction->column_factor;
  const bool fits = rows.stage != columns.stage && may_be_fetched(graph, rows, axes) &&
                    may_be_fetched(graph, columns, axes) && is_long(graph, contraction->row) &&
                    is_long(graph, contraction->column) &&
                    constant_extent(graph, stage.reduce[0]).value_or(unit->steps) >= unit->steps;
  if (!fits) return std::nullopt;
  for (const AxisId axis : stage.data) {
    if (axis == contraction->row || axis == contraction->column) continue;
    const ir::Expr& extent = graph.axes[axis].extent;
    if (!ir::as_const_int(extent) && ir::as<ir::Var>(extent) == nullptr) return std::nullopt;
    tile.batch.push_back(axis);
  }
  const int64_t sum = constant_extent(graph, stage.reduce[0]).value_or(tile.steps);
  tile.steps = std::min(tile.steps, sum / unit->steps * unit->steps);
  return tile;
}

/// About how many cycles the product takes; of unknown sizes, for one tile of the smallest.
double cycles_of(const StageGraph& graph, const MatrixTile& tile, const GpuMachine& machine) {
  const auto extent = [&](AxisId axis) { return constant_extent(graph, axis).value_or(kLeast); };
  const auto whole = [&](AxisId axis, int64_t part) {
    const int64_t parts = (extent(axis) + part - 1) / part;
    return static_cast<double>(parts);
  };
  double blocks = whole(tile.contraction.row, tile.block_rows()) *
                  whole(tile.contraction.column, tile.block_columns());
  for (const AxisId axis : tile.batch)
    blocks *= static_cast<double>(std::max<int64_t>(extent(axis), 1));
  const double products = static_cast<double>(tile.warps() * tile.rows * tile.columns);
  const double fetched = static_cast<double>((tile.block_rows() + tile.block_columns()) *
                                             tile.unit.steps * size_of(tile.type));
  const double step =
      std::max(products * kCycles / std::min<double>(kCores, static_cast<double>(tile.warps())),
               fetched / machine.l2_bytes);
  const double turns = std::ceil(blocks / static_cast<double>(machine.multiprocessors));
  return step * turns * (turns < 2 && tile.stages == 1 ? kAlone : 1);
}

/// A factor as it lies in shared memory: lines along the sum, or along its side of the tile.
struct Panel {
  AxisId line = 0;
  int64_t width = 0;  // of a line
  int64_t lines = 0;
  int64_t lanes = 1;              // that a thread fetches at once
  bool has_turned_bytes = false;  // codegen/cuda_matrix.h

  /// Each line is longer by a vector.
  int64_t bytes(DType type) const { return lines * (width * size_of(type) + kVectorBytesOfThread); }
};

Panel panel_of(const StageGraph& graph, const MatrixTile& tile, bool is_of_rows) {
  const Contraction& product = tile.contraction;
  const AxisId sum = graph[tile.stage].reduce[0];
  const int64_t side = is_of_rows ? tile.block_rows() : tile.block_columns();
  const ir::TensorRead& read = is_of_rows ? *product.row_factor : *product.column_factor;
  Panel panel{
      .line = is_of_rows ? product.row : product.column, .width = side, .lines = tile.steps};
  if (is_contiguous_in(graph, read, sum)) panel = {.line = sum, .width = tile.steps, .lines = side};
  // Of a size that is not known rows may begin anywhere.
  if (constant_extent(graph, panel.line).value_or(1) % tile.lanes() == 0)
    panel.lanes = tile.lanes();
  panel.has_turned_bytes = panel.line != sum && size_of(tile.type) == 1;
  return panel;
}

/// The tile with as many steps at once as leave room for memories in turn; nothing where there is
/// no room, where the sum has few parts, or where hardware cannot copy its factors.
std::optional<MatrixTile> with_stages(const Chooser& chooser, MatrixTile tile) {
  const StageGraph& graph = chooser.graph;
  const int64_t room = ir::gpu_arch(chooser.arch).shared_bytes_of_block;
  const int64_t least = kLeastParts * tile.steps;
  if (constant_extent(graph, graph[tile.stage].reduce[0]).value_or(least) < least)
    return std::nullopt;
  tile.stages = kStages;
  for (; tile.steps >= 2 * tile.unit.steps; tile.steps /= 2) {
    const Panel rows = panel_of(graph, tile, true);
    const Panel columns = panel_of(graph, tile, false);
    if (rows.lanes == 1 || columns.lanes == 1) return std::nullopt;
    if (kStages * (rows.bytes(tile.type) + columns.bytes(tile.type)) <= room) return tile;
  }
  return std::nullopt;
}

/// "steps": of the sum between two barriers; "stages": memories that take turns, where hardware
/// copies to them. There is room for what is taken unmeasured, and so for less.
std::vector<Parameter> parameters_of(const MatrixTile& tile) {
  Parameter steps{.name = "steps", .values = {}, .preferred = tile.steps};
  for (int64_t count = tile.steps; count >= tile.unit.steps && count % tile.unit.steps == 0;
       count /= 2)
    steps.values.insert(steps.values.begin(), count);
  std::vector<Parameter> parameters = {steps};
  if (tile.stages > 1) {
    Parameter stages{.name = "stages", .values = {}, .preferred = tile.stages};
    for (int64_t count = 2; count <= tile.stages; ++count)
      stages.values.push_back(count);
    parameters.push_back(stages);
  }
  return parameters;
}

/// Writes the schedule of a tile.
class MatrixWriter {
 public:
  MatrixWriter(const StageGraph& graph, const MatrixTile& tile, StepWriter& steps)
      : tile_(tile),
        rows_(panel_of(graph, tile, true)),
        columns_(panel_of(graph, tile, false)),
        steps_(steps) {}

  void write() {
    const StageId id = tile_.stage;
    const Fetch rows = fetch(*tile_.contraction.row_factor, rows_);
    const Fetch columns = fetch(*tile_.contraction.column_factor, columns_);
    // The loops give the sums their layout, then they are the copy's.
    cut();
    const auto [sums, axes] = steps_.cache_write(id, "local");
    const Loops loops = cut();
    steps_.bind(id, steps_.fuse(id, loops.blocks), "blockIdx.x");
    steps_.bind(id, steps_.fuse(id, loops.warps), "threadIdx.z");
    steps_.bind(id, loops.row, "threadIdx.y");
    steps_.bind(id, loops.pair, "threadIdx.x");
    for (const AxisId axis : loops.own)
      steps_.unroll(id, axis);
    steps_.compute_at(sums, id, loops.pair);
    const std::vector<AxisId> own(axes.end() - 1 - static_cast<std::ptrdiff_t>(loops.own.size()),
                                  axes.end() - 1);
    const auto [part, inside] = steps_.split(sums, axes.back(), tile_.steps);
    const auto [group, step] = steps_.split(sums, inside, tile_.unit.steps);
    std::vector<AxisId> order = {part, group, step};
    order.insert(order.end(), own.begin(), own.end());
    steps_.reorder(sums, order);
    for (const Fetch& each : {rows, columns}) {
      steps_.compute_at(each.copy, sums, part);
      fetch_together(each);
    }
    if (tile_.stages > 1) steps_.software_pipeline(sums, part, tile_.stages);
  }

 private:
  struct Fetch {
    StageId copy;
    std::vector<AxisId> axes;
    int64_t lanes = 1;
  };
  struct Loops {
    std::vector<AxisId> blocks;
    std::vector<AxisId> warps;  // down and across
    AxisId row = 0;
    AxisId pair = 0;
    std::vector<AxisId> own;  // of a thread: products down and across, its rows and columns
  };

  /// A copy in shared memory with the factor's own order of dimensions.
  Fetch fetch(const ir::TensorRead& read, const Panel& panel) {
    const auto [copy, axes] =
        steps_.cache_read({read.stage, read.output}, tile_.stage, {}, "shared");
    steps_.storage_align(copy, axes[axes.size() - 2], panel.width, tile_.lanes());
    return {copy, axes, panel.lanes};
  }

  /// All threads of the block, side by side along the last axis.
  void fetch_together(const Fetch& fetch) {
    const AxisId all = steps_.fuse_vectors(fetch.copy, fetch.axes, fetch.lanes);
    const auto [above, x] = steps_.split(fetch.copy, all, 4);
    const auto [rest, y] = steps_.split(fetch.copy, above, 8);
    const auto [outer, z] = steps_.split(fetch.copy, rest, tile_.warps());
    steps_.bind(fetch.copy, z, "threadIdx.z");
    steps_.bind(fetch.copy, y, "threadIdx.y");
    steps_.bind(fetch.copy, x, "threadIdx.x");
  }

  /// The two rows of a lane are 8 apart; of turned bytes they are neighbours.
  std::pair<AxisId, AxisId> cut_rows(AxisId product) {
    if (!rows_.has_turned_bytes) {
      const auto [lower, row] = steps_.split(tile_.stage, product, kRows / 2);
      return {row, lower};
    }
    return steps_.split(tile_.stage, product, 2);
  }

  /// The loops over the columns of a warp: products, those that are loaded with each of them, the
  /// thread, its two columns of a product.
  struct Columns {
    std::vector<AxisId> products;
    AxisId pair = 0;
    AxisId neighbour = 0;
  };
  Columns cut_columns(AxisId of_warp) {
    const StageId id = tile_.stage;
    if (!columns_.has_turned_bytes) {
      const auto [products, inside] = steps_.split(id, of_warp, kColumns);
      const auto [pair, neighbour] = steps_.split(id, inside, 2);
      return {{products}, pair, neighbour};
    }
    const auto [products, inside] = steps_.split(id, of_warp, 2 * kColumns);
    const auto [pair, own] = steps_.split(id, inside, 4);
    const auto [neighbour, other] = steps_.split(id, own, 2);
    return {{products, other}, pair, neighbour};
  }

  Loops cut() {
    const StageId id = tile_.stage;
    const auto [row_tiles, row_part] = steps_.split(id, tile_.contraction.row, tile_.block_rows());
    const auto [down, of_warp] = steps_.split(id, row_part, tile_.rows * kRows);
    const auto [row_products, in_product] = steps_.split(id, of_warp, kRows);
    const auto [row, lower] = cut_rows(in_product);
    const auto [column_tiles, column_part] =
        steps_.split(id, tile_.contraction.column, tile_.block_columns());
    const auto [across, of_warp_too] = steps_.split(id, column_part, tile_.columns * kColumns);
    const Columns columns = cut_columns(of_warp_too);
    Loops loops{.blocks = tile_.batch,
                .warps = {down, across},
                .row = row,
                .pair = columns.pair,
                .own = {row_products}};
    loops.blocks.insert(loops.blocks.end(), {row_tiles, column_tiles});
    loops.own.insert(loops.own.end(), columns.products.begin(), columns.products.end());
    loops.own.insert(loops.own.end(), {lower, columns.neighbour});
    std::vector<AxisId> order = loops.blocks;
    order.insert(order.end(), {down, across, row, columns.pair});
    order.insert(order.end(), loops.own.begin(), loops.own.end());
    steps_.reorder(id, order);
    return loops;
  }

  const MatrixTile& tile_;
  const Panel rows_;
  const Panel columns_;
  StepWriter& steps_;
};

}  // namespace

std::vector<Sketch> matrix_tile_sketches(const Chooser& chooser, StageId id) {
  const std::optional<MatrixTile> any = any_tile_of(chooser, id);
  if (!any) return {};
  struct Shape {
    int64_t down, across, rows, columns;
    bool is_late;  // copied in the background
  };
  constexpr Shape kShapes[] = {
      {4, 2, 4, 8, true}, {2, 2, 4, 8, false}, {2, 2, 4, 4, false}, {2, 2, 2, 4, false}};
  // What 8-bit floats are added up in takes registers, too: a warp has 64 x 32 of them.
  constexpr Shape kSmallShapes[] = {{2, 4, 4, 4, true}, {2, 2, 4, 4, false}, {2, 2, 2, 4, false}};
  const bool is_small = size_of(any->type) == 1 && !any->unit.is_exact;
  std::vector<MatrixTile> tiles;
  for (const Shape& shape : is_small ? std::span<const Shape>(kSmallShapes) : kShapes) {
    MatrixTile tile = *any;
    tile.warps_down = shape.down;
    tile.warps_across = shape.across;
    tile.rows = shape.rows;
    tile.columns = shape.columns;
    const auto found = shape.is_late ? with_stages(chooser, tile) : std::optional(tile);
    if (found) tiles.push_back(*found);
  }
  const GpuMachine& machine = gpu_machine(chooser.arch);
  std::ranges::stable_sort(
      tiles, {}, [&](const MatrixTile& tile) { return cycles_of(chooser.graph, tile, machine); });
  std::vector<Sketch> sketches;
  for (const MatrixTile& tile : tiles) {
    sketches.push_back(
        {.name = fmt::format("matrix instructions, {} x {} a block", tile.block_rows(),
                             tile.block_columns()),
         .parameters = parameters_of(tile),
         .write = [&graph = chooser.graph, tile](StepWriter& writer, const Values& values) {
           MatrixTile taken = tile;
           taken.steps = values.get("steps", tile.steps);
           taken.stages = values.get("stages", tile.stages);
           MatrixWriter(graph, taken, writer).write();
         }});
  }
  return sketches;
}

}  // namespace kiln::autoschedule
