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
#include <limits>

#include <fmt/format.h>

#include "compiler/analysis/affine.h"
#include "compiler/autoschedule/recognise/prologue.h"
#include "compiler/autoschedule/templates/block_tile.h"
#include "compiler/autoschedule/templates/contraction_loops.h"
#include "compiler/autoschedule/templates/fetched_factors.h"
#include "compiler/autoschedule/templates/prologue_cost.h"
#include "compiler/autoschedule/templates/tile_cost.h"
#include "compiler/ir/build.h"

namespace kiln::autoschedule {
namespace {

constexpr int64_t kLeast = 32;        // of an axis that is cut into tiles
constexpr int64_t kLeastOfLong = 17;  // where the sum has this many steps:
constexpr int64_t kLongSum = 64;
constexpr int64_t kMostSteps = 64;        // of the reduction between two barriers
constexpr int64_t kBytes = 24 << 10;      // of shared memory: two blocks have room on every device,
constexpr int64_t kManyBytes = 50 << 10;  // and one with the parts that many sums need
constexpr int64_t kCopies = 2;            // of both factors, for iterations that take turns
constexpr int64_t kSumBytes = 256;        // of a thread's sums: a quarter of its registers
constexpr int64_t kManySums = 64;         // of a thread; more are half of its registers
constexpr int64_t kFewSums = 16;          // of a thread: short code of many steps
constexpr ThreadTile kAnyTile = {4, 4};   // the first: taken where sizes are not known
constexpr int64_t kAnySteps = 16;
// Elements that are fetched one by one have a place each to be found, which cycles leave out: so
// much longer the loops of 3x3 windows of 16 and 32 channels are predicted to take.
constexpr double kOneByOne = 1.4;
constexpr ThreadTile kTiles[] = {{4, 4}, {8, 4}, {4, 8}, {8, 8},  {2, 4},
                                 {4, 2}, {2, 8}, {8, 2}, {16, 8}, {8, 16}};
// Products of a thread between two barriers: NVRTC takes 1.2 s for so many, which is why the tiles
// that have them are for who tunes. They are the fastest: 4096^3 on an H200 takes 2840 us by 16 x 8
// a thread, 2988 by 8 x 8.
constexpr int64_t kMostProducts = 2048;

/// Whether a side is too short for a tile: of a short sum each of its elements is computed as soon.
bool is_short(const StageGraph& graph, const Stage& stage, const std::vector<AxisId>& side) {
  const bool is_long = constant_extent_of(graph, stage.reduce).value_or(0) >= kLongSum;
  return constant_extent_of(graph, side).value_or(kLeast) < (is_long ? kLeastOfLong : kLeast);
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

int64_t sums_of(const BlockTile& tile) { return tile.own.rows * tile.own.columns; }

bool fits(const StageGraph& graph, const BlockTile& tile) {
  const int64_t room = sums_of(tile) > kManySums ? kManyBytes : kBytes;
  int64_t bytes = 0;
  if (tile.is_joined) {
    bytes = tile.steps * kThreadsOfSide *
            (tile.own.rows * size_of(tile.contraction.row_factor->type.element) +
             tile.own.columns * size_of(tile.contraction.column_factor->type.element));
    return kCopies * bytes <= room;
  }
  for (const ir::TensorRead* read : {tile.contraction.row_factor, tile.contraction.column_factor}) {
    const std::optional<int64_t> elements = elements_of(graph, tile, *read);
    if (!elements) return false;
    bytes += *elements * size_of(read->type.element);
  }
  return kCopies * bytes <= room;
}

/// What all tiles of the stage have in common; nothing where it has none.
std::optional<BlockTile> any_tile_of(const StageGraph& graph, StageId id) {
  const auto contraction = fetched_contraction(graph, id, FactorForm::Computed);
  if (!contraction) return std::nullopt;
  return BlockTile{.stage = id, .contraction = *contraction, .batch = {}};
}

/// A tile of one row axis and one column axis: of what it reads a block has a box.
std::optional<BlockTile> of_one_axis_a_side(const StageGraph& graph, BlockTile tile) {
  const Stage& stage = graph[tile.stage];
  const Contraction& contraction = tile.contraction;
  if (is_short(graph, stage, {contraction.row}) || is_short(graph, stage, {contraction.column}))
    return std::nullopt;
  tile.batch = stage.data;
  std::erase_if(tile.batch,
                [&](AxisId axis) { return axis == contraction.row || axis == contraction.column; });
  if (!have_plain_extents(graph, tile.batch)) return std::nullopt;
  for (size_t i = 1; i < stage.reduce.size(); ++i) {
    const auto extent = constant_extent(graph, stage.reduce[i]);
    if (!extent || *extent > kMostSteps) return std::nullopt;
    tile.window *= std::max<int64_t>(*extent, 1);
  }
  return tile;
}

/// A tile of all axes of a side, for windows and images that have few columns. What a window reads
/// is laid out for it, element by element.
std::optional<BlockTile> of_joined_axes(const StageGraph& graph, BlockTile tile) {
  tile.sides = sides_of(graph, tile.stage, tile.contraction);
  const std::vector<AxisId>& reduce = graph[tile.stage].reduce;
  const bool is_one = tile.sides.rows.size() == 1 && tile.sides.columns.size() == 1;
  if (is_one && reduce.size() == 1) return std::nullopt;
  const auto is_side = [&](const std::vector<AxisId>& axes) {
    return may_be_one_loop(graph, axes) && !is_short(graph, graph[tile.stage], axes);
  };
  if (!is_side(tile.sides.rows) || !is_side(tile.sides.columns) || !may_be_one_loop(graph, reduce))
    return std::nullopt;
  tile.batch = tile.sides.batch;
  if (!have_plain_extents(graph, tile.batch)) return std::nullopt;
  tile.is_joined = true;
  tile.padding = padding_of_factors(graph, tile.stage, tile.contraction);
  return tile;
}

bool has_room(const StageGraph& graph, const BlockTile& tile) {
  return tile.steps * tile.window <= kMostSteps && tile.steps * sums_of(tile) <= kMostProducts &&
         fits(graph, tile);
}

/// The tile with as many steps at once as there is room for; nothing where there is none.
std::optional<BlockTile> with_steps(const StageGraph& graph, BlockTile tile) {
  const int64_t sums = sums_of(tile);
  const int64_t bytes = sums * size_of(graph[tile.stage].bodies[0]->type.element);
  const int64_t room = sums > kManySums ? 2 * kSumBytes : kSumBytes;
  if (tile.own != kAnyTile && bytes > room) return std::nullopt;
  // More would only make longer code of the large tiles.
  const int64_t most = sums <= kFewSums || sums > kManySums ? 16 : 8;
  for (tile.steps = most; tile.steps > 0; tile.steps /= 2) {
    if (has_room(graph, tile)) return tile;
  }
  return std::nullopt;
}

/// "steps": of the sum between two barriers, as many as there is room for.
Parameter steps_parameter(const StageGraph& graph, BlockTile tile) {
  Parameter steps{.name = "steps", .values = {}, .preferred = tile.steps};
  for (const int64_t count : {4, 8, 16, 32}) {
    tile.steps = count;
    if (count == steps.preferred || has_room(graph, tile)) steps.values.push_back(count);
  }
  if (!std::ranges::binary_search(steps.values, steps.preferred))
    steps.values.insert(steps.values.begin(), steps.preferred);
  return steps;
}

/// Whether a tile suits the sides of a product: those of two rows or columns sides that others are
/// too large for, and those of many sums sides that they do not overhang.
bool suits_sides(const StageGraph& graph, const BlockTile& tile) {
  const BlockProduct product = product_of(graph, tile);
  const bool is_large = sums_of(tile) > kManySums;
  const auto fits = [&](int64_t own, int64_t extent) {
    const int64_t side = kThreadsOfSide * own;
    if (is_large) return extent == 0 || extent >= side;
    return own >= kAnyTile.rows || (extent > 0 && extent <= side);
  };
  return fits(tile.own.rows, product.rows) && fits(tile.own.columns, product.columns);
}

/// All tiles of a form that fit.
void add_tiles(const StageGraph& graph, const std::optional<BlockTile>& form,
               std::vector<BlockTile>& tiles) {
  if (!form) return;
  for (const ThreadTile& own : kTiles) {
    BlockTile tile = *form;
    tile.own = own;
    if (!suits_sides(graph, tile)) continue;
    if (const auto found = with_steps(graph, tile)) tiles.push_back(*found);
  }
}

/// Whether elements of a factor are fetched one by one, as those of windows are that lie across.
bool fetches_one_by_one(const StageGraph& graph, const BlockTile& tile) {
  const auto is_one_by_one = [&](const ir::TensorRead& read, const std::vector<AxisId>& side) {
    const int64_t lanes = most_lanes(graph, tile, read);
    return elements_in_order(graph, read, side) % lanes != 0 &&
           elements_in_order(graph, read, graph[tile.stage].reduce) % lanes != 0;
  };
  return tile.is_joined && (is_one_by_one(*tile.contraction.row_factor, tile.sides.rows) ||
                            is_one_by_one(*tile.contraction.column_factor, tile.sides.columns));
}

/// What a tile takes, and what is stored for it before, with its sum in so many parts. Of sizes
/// that are not known all tiles with one choice of prologues take the same.
double tile_cycles(const StageGraph& graph, const BlockTile& tile, const GpuMachine& machine,
                   int64_t parts = 1) {
  BlockProduct product = product_of(graph, tile);
  ThreadTile own = tile.own;
  int64_t steps = tile.steps;
  if (product.rows * product.columns * product.steps == 0) {
    for (int64_t* extent : {&product.rows, &product.columns, &product.steps})
      *extent = kAnyExtent;
    own = kAnyTile;
    steps = kAnySteps;
  }
  product.batch *= parts;
  product.steps = ceil_div(product.steps, parts);
  return block_cycles(product, own, steps, machine) + stored_cycles(graph, tile.prologues, machine);
}

/// The tiles that fit, the one that is predicted to be fastest first, those of very long code last.
std::vector<BlockTile> tiles_of(const StageGraph& graph, std::string_view arch, StageId id,
                                const std::vector<StageId>& prologues) {
  std::vector<BlockTile> tiles;
  std::optional<BlockTile> any = any_tile_of(graph, id);
  if (!any) return tiles;
  for (PrologueChoice& choice : prologue_choices(prologues)) {
    any->prologues = std::move(choice);
    std::vector<BlockTile> of_choice;
    add_tiles(graph, of_joined_axes(graph, *any), of_choice);
    // Where one tile computes the padding, all do, since it is no stage by itself then.
    if (of_choice.empty() || !of_choice[0].padding)
      add_tiles(graph, of_one_axis_a_side(graph, *any), of_choice);
    tiles.insert(tiles.end(), of_choice.begin(), of_choice.end());
  }
  const GpuMachine machine = gpu_machine(arch);
  std::ranges::stable_sort(tiles, {}, [&](const BlockTile& tile) {
    return std::pair(sums_of(tile) > kManySums, tile_cycles(graph, tile, machine));
  });
  return tiles;
}

}  // namespace

BlockProduct product_of(const StageGraph& graph, const BlockTile& tile) {
  const Contraction& contraction = tile.contraction;
  const std::vector<AxisId>& reduce = graph[tile.stage].reduce;
  const auto extent = [&](const std::vector<AxisId>& axes) {
    return constant_extent_of(graph, axes).value_or(0);
  };
  const auto work_of = [&](const ir::TensorRead& read) {
    if (!tile.prologues.computes(read.stage)) return FetchWork{};
    const PrologueWork work = prologue_work(graph, read.stage);
    const auto lanes = static_cast<double>(most_lanes(graph, tile, read));
    return FetchWork{work.instructions + work.other_loads / lanes, work.multiply_adds, work.bytes};
  };
  BlockProduct product{.element_bytes = size_of(contraction.row_factor->type.element),
                       .row_work = work_of(*contraction.row_factor),
                       .column_work = work_of(*contraction.column_factor)};
  for (const AxisId axis : tile.batch)
    product.batch *= std::max<int64_t>(extent({axis}), 1);
  if (tile.is_joined) {
    product.rows = extent(tile.sides.rows);
    product.columns = extent(tile.sides.columns);
    product.steps = extent(reduce);
  } else {
    product.rows = extent({contraction.row});
    product.columns = extent({contraction.column});
    product.steps = extent({reduce[0]}) * tile.window;
  }
  return product;
}

int64_t most_lanes(const StageGraph& graph, const BlockTile& tile, const ir::TensorRead& read) {
  const int64_t lanes = kVectorBytesOfThread / size_of(read.type.element);
  const bool serves = lanes > 1 && (!tile.prologues.computes(read.stage) ||
                                    aligned_elements(graph, read.stage) % lanes == 0);
  return serves ? lanes : 1;
}

std::vector<StageId> prologues_of_block_tiles(const StageGraph& graph, StageId id) {
  const std::optional<BlockTile> any = any_tile_of(graph, id);
  return any ? prologues_of_factors(graph, id, any->contraction) : std::vector<StageId>{};
}

bool has_block_tiles(const StageGraph& graph, StageId id) {
  return !tiles_of(graph, "", id, {}).empty();
}

CyclesOfParts block_tile_cycles(const Chooser& chooser, StageId id) {
  const StageGraph& graph = chooser.graph;
  std::vector<BlockTile> tiles =
      tiles_of(graph, chooser.arch, id, prologues_of_block_tiles(graph, id));
  std::erase_if(tiles, [](const BlockTile& tile) { return sums_of(tile) > kManySums; });
  const bool are_known = std::ranges::all_of(tiles, [&](const BlockTile& tile) {
    const BlockProduct product = product_of(graph, tile);
    return product.rows * product.columns * product.steps > 0;
  });
  if (tiles.empty() || !are_known) return {};
  return [tiles = std::move(tiles), &graph, machine = gpu_machine(chooser.arch)](int64_t parts) {
    double shortest = std::numeric_limits<double>::infinity();
    for (const BlockTile& tile : tiles)
      shortest = std::min(shortest, tile_cycles(graph, tile, machine, parts));
    return shortest;
  };
}

double whole_tile_cycles(const Chooser& chooser, StageId id) {
  const StageGraph& graph = chooser.graph;
  const GpuMachine machine = gpu_machine(chooser.arch);
  double shortest = std::numeric_limits<double>::infinity();
  for (const BlockTile& tile :
       tiles_of(graph, chooser.arch, id, prologues_of_block_tiles(graph, id))) {
    const double times = fetches_one_by_one(graph, tile) ? kOneByOne : 1;
    shortest = std::min(shortest, times * tile_cycles(graph, tile, machine));
  }
  return shortest;
}

std::optional<StageId> padding_of_block_tiles(const StageGraph& graph, StageId id) {
  const std::vector<BlockTile> tiles = tiles_of(graph, "", id, {});
  return tiles.empty() ? std::nullopt : tiles[0].padding;
}

std::vector<Sketch> block_tile_sketches(const Chooser& chooser, StageId id,
                                        const std::optional<Epilogue>& epilogue,
                                        const std::vector<StageId>& prologues) {
  std::vector<Sketch> sketches;
  for (const BlockTile& tile : tiles_of(chooser.graph, chooser.arch, id, prologues)) {
    Sketch sketch{.name = fmt::format("{} a block, {} x {} a thread",
                                      tile.is_joined ? "a tile of all axes" : "a tile",
                                      tile.own.rows, tile.own.columns),
                  .parameters = {steps_parameter(chooser.graph, tile)},
                  .write = [&graph = chooser.graph, tile, epilogue](StepWriter& writer,
                                                                    const Values& values) {
                    BlockTile taken = tile;
                    taken.steps = values.get("steps", tile.steps);
                    taken.epilogue = epilogue;
                    write_block_tile(graph, taken, writer);
                  }};
    sketches.push_back(with_prologues(chooser, tile.prologues, std::move(sketch)));
  }
  return sketches;
}

}  // namespace kiln::autoschedule
