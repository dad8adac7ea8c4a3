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
// Where a product has too few of those for the GPU, tiles are smaller, and fetched when they are
// needed: other blocks of the multiprocessor work meanwhile. So are rows that hardware cannot copy
// in the background, since they begin anywhere, but where it takes less time to copy all of them
// first (factor_copies.cc).
//
// The loops are ordered as the sums lie in the lanes of mma.sync (analysis/matrix_product.h), which
// is what makes them matrix instructions. Rows in shared memory are 16 bytes longer than they need
// to be, so that the eight of them that ldmatrix reads at once begin in different banks.
#include "compiler/autoschedule/templates/matrix_tiles.h"

#include <algorithm>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "compiler/autoschedule/templates/matrix_forms.h"
#include "compiler/ir/gpu_arch.h"

namespace kiln::autoschedule {
namespace {

// Memories of a tile that is copied in the background: one is read while two are filled.
constexpr int64_t kStages = 3;
// Copies of a thread in an iteration, each of which has a place of its own.
constexpr int64_t kMostCopies = 48;
// Of a factor that is computed of what it fetches, words of a thread that wait in registers beside
// the sums, and memories: one is read while the other is filled.
constexpr int64_t kMostWaiting = 16;
constexpr int64_t kTurns = 2;
constexpr int64_t kMostWarps = 8;  // of a block
// Instructions' steps between barriers, where elements of a window are fetched one by one.
constexpr int64_t kFewSteps = 2;
// Parts of a sum that are worth it: the first ones of a block wait for all that is copied.
constexpr int64_t kLeastParts = 4;

/// Whether the tile has room, and its threads, with so many memories of what hardware copies.
bool has_room(const StageGraph& graph, const MatrixTile& tile, int64_t room, int64_t stages) {
  int64_t bytes = 0;
  int64_t copies = 0;
  int64_t waiting = 0;
  for (const bool are_rows : {true, false}) {
    const Panel panel = panel_of(graph, tile, are_rows);
    bytes += panel.bytes(tile.type) * (panel.is_computed ? kTurns : stages);
    copies += panel.lines * panel.width / panel.lanes;
    if (panel.is_computed) waiting += panel.lines * panel.width * size_of(tile.type);
  }
  const int64_t threads = tile.warps() * ir::kWarp;
  return bytes <= room && copies <= kMostCopies * threads &&
         waiting <= kMostWaiting * ir::kBankBytes * threads;
}

/// The tile with as many steps at once as leave room for memories in turn; nothing where there is
/// no room, where the sum has few parts, or where hardware cannot copy its factors.
std::optional<MatrixTile> with_stages(const Chooser& chooser, MatrixTile tile) {
  const StageGraph& graph = chooser.graph;
  const int64_t room = ir::gpu_arch(chooser.arch).shared_bytes_of_block;
  const int64_t least = kLeastParts * tile.steps;
  if (constant_extent_of(graph, tile.sum).value_or(least) < least) return std::nullopt;
  // Places of a window in many pieces take more registers than there are.
  const bool is_in_pieces = tile.is_joined && fetched_at_once(graph, tile) < 2 * tile.lanes();
  if (is_in_pieces || !are_fetched_side_by_side(graph, tile)) return std::nullopt;
  const bool computes_rows = panel_of(graph, tile, true).is_computed;
  const bool computes_columns = panel_of(graph, tile, false).is_computed;
  tile.stages = computes_rows && computes_columns ? kTurns
                // As many as are written out: a multiple of the other factor's.
                : computes_rows || computes_columns ? 2 * kTurns
                                                    : kStages;
  for (; tile.steps >= 2 * tile.unit.steps; tile.steps /= 2) {
    if (!has_room(graph, tile, room, tile.stages)) continue;
    // As many iterations are written out as there are stages: whole chains of them.
    const bool has_rest =
        tile.stages * tile.steps % std::max<int64_t>(tile.unit.chained_steps, 1) != 0;
    if (has_rest && tile.stages == kStages && has_room(graph, tile, room, kStages + 1))
      ++tile.stages;
    return tile;
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

/// Whether a side is shorter than a block has it, of a copy in lines of the sum: what a thread
/// fetches of these has a condition for the side then.
bool has_short_copy(const StageGraph& graph, const MatrixTile& tile) {
  const auto is_short = [&](bool are_rows) {
    const std::vector<AxisId>& side = are_rows ? tile.sides.rows : tile.sides.columns;
    const int64_t block = are_rows ? tile.block_rows() : tile.block_columns();
    return (are_rows ? tile.row_packing : tile.column_packing) == Packing::Lines &&
           panel_of(graph, tile, are_rows).is_along_sum &&
           constant_extent_of(graph, side).value_or(block) < block;
  };
  return is_short(true) || is_short(false);
}

/// Whether a tile suits sides of which one is fewer than 64: more than half of it is there, along
/// both. Of less its memory has no more than what is there, and each product a condition.
bool suits_short_sides(const StageGraph& graph, const MatrixTile& tile) {
  constexpr int64_t kShort = 64;
  const int64_t rows = constant_extent_of(graph, tile.sides.rows).value_or(tile.block_rows());
  const int64_t columns =
      constant_extent_of(graph, tile.sides.columns).value_or(tile.block_columns());
  return std::min(rows, columns) >= kShort ||
         (2 * rows > tile.block_rows() && 2 * columns > tile.block_columns());
}

/// The tiles of a form.
std::vector<MatrixTile> tiles_of(const Chooser& chooser, const MatrixTile& form) {
  struct Shape {
    int64_t down, across, rows, columns;
    bool is_late;  // copied in the background
  };
  static constexpr Shape kShapes[] = {
      {4, 2, 4, 8, true},  {4, 1, 4, 8, true},  {1, 4, 4, 8, true},
      {2, 2, 4, 8, false}, {2, 2, 4, 4, false}, {2, 2, 2, 8, false},
      {2, 2, 2, 4, false}, {1, 4, 2, 4, false}, {4, 1, 2, 4, false}};
  // What 8-bit floats are added up in takes registers, too: a warp has 64 x 32 of them, or the
  // other way round where its rows are turned, of which it has fewer then.
  static constexpr Shape kSmallShapes[] = {
      {2, 4, 4, 4, true}, {2, 2, 4, 4, false}, {2, 2, 2, 4, false}};
  static constexpr Shape kTurnedShapes[] = {
      {4, 2, 2, 8, true}, {2, 2, 4, 4, false}, {2, 2, 2, 4, false}};
  const bool is_small = form.unit.chained_steps > 0;
  const bool has_turned_rows = panel_of(chooser.graph, form, true).has_turned_bytes &&
                               !panel_of(chooser.graph, form, false).has_turned_bytes;
  const bool computes_rows_alone = panel_of(chooser.graph, form, true).is_computed &&
                                   !panel_of(chooser.graph, form, false).is_computed;
  const std::span<const Shape> small = has_turned_rows ? kTurnedShapes : kSmallShapes;
  std::vector<MatrixTile> tiles;
  for (const Shape& shape : is_small ? small : kShapes) {
    MatrixTile tile = form;
    tile.warps_down = shape.down;
    tile.warps_across = shape.across;
    tile.rows = shape.rows;
    tile.columns = shape.columns;
    // Less waits in registers where the longer side is that which hardware copies.
    if (!is_small && tile.warps() == kMostWarps && computes_rows_alone)
      std::swap(tile.warps_down, tile.warps_across);
    if (has_short_copy(chooser.graph, tile) || !suits_short_sides(chooser.graph, tile)) continue;
    const auto found = shape.is_late ? with_stages(chooser, tile) : std::optional(tile);
    if (!found) continue;
    tiles.push_back(*found);
    // Elements that are fetched one by one have a register each on their way, and of a window so
    // have the places of pieces.
    const bool is_in_pieces = fetched_at_once(chooser.graph, tile) < 2 * tile.lanes();
    const bool takes_registers =
        tile.is_joined ? is_in_pieces : !are_fetched_side_by_side(chooser.graph, tile);
    if (found->stages == 1 && takes_registers)
      tiles.back().steps = std::min(tile.steps, kFewSteps * tile.unit.steps);
  }
  return tiles;
}

/// What is copied before since its rows begin anywhere, in words.
std::string_view copies_of(const MatrixTile& tile) {
  const bool rows = tile.row_packing == Packing::Lines;
  const bool columns = tile.column_packing == Packing::Lines;
  if (rows && columns) return " on copies of both factors";
  return rows ? " on a copy of the rows" : columns ? " on a copy of the columns" : "";
}

std::vector<MatrixTile> all_tiles_of(const Chooser& chooser, StageId id,
                                     const std::vector<StageId>& prologues) {
  std::vector<MatrixTile> tiles;
  for (const MatrixTile& form : matrix_forms(chooser, id, prologues)) {
    const std::vector<MatrixTile> of_form = tiles_of(chooser, form);
    tiles.insert(tiles.end(), of_form.begin(), of_form.end());
  }
  return tiles;
}

}  // namespace

std::optional<StageId> padding_of_matrix_tiles(const Chooser& chooser, StageId id) {
  const std::vector<MatrixTile> forms = matrix_forms(chooser, id, {});
  return forms.empty() ? std::nullopt : forms[0].padding;
}

CyclesOfParts matrix_tile_cycles(const Chooser& chooser, StageId id) {
  std::vector<MatrixTile> tiles = all_tiles_of(chooser, id, prologues_of_matrix_tiles(chooser, id));
  if (tiles.empty()) return {};
  return [tiles = std::move(tiles), &graph = chooser.graph,
          machine = gpu_machine(chooser.arch)](int64_t parts) {
    double shortest = std::numeric_limits<double>::infinity();
    for (const MatrixTile& tile : tiles)
      shortest = std::min(shortest, matrix_cycles(graph, tile, machine, parts));
    return shortest;
  };
}

std::vector<Sketch> matrix_tile_sketches(const Chooser& chooser, StageId id,
                                         const std::optional<Epilogue>& epilogue,
                                         const std::vector<StageId>& prologues) {
  std::vector<MatrixTile> tiles = all_tiles_of(chooser, id, prologues);
  const GpuMachine machine = gpu_machine(chooser.arch);
  std::ranges::stable_sort(tiles, {}, [&](const MatrixTile& tile) {
    return matrix_cycles(chooser.graph, tile, machine);
  });
  std::vector<Sketch> sketches;
  for (const MatrixTile& tile : tiles) {
    Sketch sketch{.name = fmt::format("matrix instructions{}{}, {} x {} a block",
                                      tile.is_joined ? " of all axes" : "", copies_of(tile),
                                      tile.block_rows(), tile.block_columns()),
                  .parameters = parameters_of(tile),
                  .write = [&graph = chooser.graph, tile, epilogue](StepWriter& writer,
                                                                    const Values& values) {
                    MatrixTile taken = tile;
                    taken.steps = values.get("steps", tile.steps);
                    taken.stages = values.get("stages", tile.stages);
                    taken.epilogue = epilogue;
                    write_matrix_tile(graph, taken, writer);
                  }};
    sketches.push_back(with_prologues(chooser, tile.prologues, std::move(sketch)));
  }
  return sketches;
}

}  // namespace kiln::autoschedule
