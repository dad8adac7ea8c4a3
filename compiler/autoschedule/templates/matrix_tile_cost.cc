// What a tile of matrix instructions costs: the slowest of its tensor cores, its instructions and
// its L2 traffic, for as many blocks as the busiest multiprocessor gets, and before these the
// copies that it has of factors.
//
//   1024 x 1024 on 132 multiprocessors: 128 x 128 is 64 blocks, of which each has one alone;
//   64 x 64 is 256, which read twice as much
#include <algorithm>
#include <cmath>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/templates/matrix_forms.h"
#include "compiler/autoschedule/templates/matrix_tile.h"
#include "compiler/autoschedule/templates/prologue_cost.h"
#include "compiler/ir/build.h"
#include "compiler/ir/stmt.h"

namespace kiln::autoschedule {
namespace {

// Multiply-adds of 16-bit floats that an instruction takes the time of: of other types it has as
// many bytes, and of bytes that are multiplied as halves as many as these.
constexpr double kProducts = 16.0 * 8 * 16;
// One block alone waits at its barriers with nobody to take its turn.
constexpr double kAlone = 1.5;
// Elements that are fetched one by one keep all blocks of a multiprocessor waiting: estimated.
constexpr double kOneByOne = 2;
constexpr int64_t kUnknown = 64;  // what is not known is taken for
// Work of a multiprocessor, in tiles of 256 x 128, of which one block more or less counts; of more,
// tiles that are larger keep more in registers, and the last blocks end as others do.
constexpr double kFewTiles = 4;
constexpr double kLargeTile = 256.0 * 128;
// A load, a store, and the place of either, as main loops have them (docs/gpu.md).
constexpr double kFetchInstructions = 6;
// Of instructions that could be issued, where they wait for each other, as those of functions do.
constexpr double kIssued = 0.8;
// Of a copy before, for an element: the same, and where it is by divisions.
constexpr double kCopyInstructions = 30;

const ir::TensorRead& factor_of(const MatrixTile& tile, bool is_of_rows) {
  return is_of_rows ? *tile.contraction.row_factor : *tile.contraction.column_factor;
}

/// What a tile fetches of a factor for one step of the matrix instruction: instructions of all
/// warps, and bytes.
struct Fetches {
  double instructions = 0;
  double bytes = 0;
};
Fetches fetches_of(const StageGraph& graph, const MatrixTile& tile, bool is_of_rows) {
  const int64_t side = is_of_rows ? tile.block_rows() : tile.block_columns();
  const auto elements = static_cast<double>(side * tile.unit.steps);
  const Panel panel = panel_of(graph, tile, is_of_rows);
  const auto lanes = static_cast<double>(panel.lanes);
  if (!panel.is_computed) {
    return {.instructions = kFetchInstructions * elements / (lanes * ir::kWarp),
            .bytes = elements * static_cast<double>(size_of(tile.type))};
  }
  const PrologueWork work = prologue_work(graph, factor_of(tile, is_of_rows).stage);
  const double loads = kFetchInstructions * (1 + work.other_loads) / lanes;
  return {.instructions = (loads + work.instructions / kIssued) * elements / ir::kWarp,
          .bytes = elements * work.bytes};
}

/// What the launches take that copy factors before.
double copy_cycles(const StageGraph& graph, const MatrixTile& tile, const GpuMachine& machine) {
  double cycles = 0;
  for (const bool are_rows : {true, false}) {
    if ((are_rows ? tile.row_packing : tile.column_packing) == Packing::None) continue;
    const ir::TensorRead& read = factor_of(tile, are_rows);
    double elements = 1;
    for (const ir::Expr& extent : graph[read.stage].shapes[read.output])
      elements *= static_cast<double>(ir::as_const_int(extent).value_or(kUnknown));
    const double each = elements / static_cast<double>(machine.multiprocessors);
    const auto own = static_cast<double>(size_of(tile.type));
    const PrologueWork work = tile.prologues.computes(read.stage) ? prologue_work(graph, read.stage)
                                                                  : PrologueWork{.bytes = own};
    const double issue = (kCopyInstructions + work.instructions) * each / (ir::kWarp * kSchedulers);
    const double moved = each * (work.bytes + own) / machine.memory_bytes;
    cycles += kLaunchSeconds * machine.gigahertz * 1e9 + std::max(issue, moved);
  }
  return cycles;
}

/// Blocks of the busiest multiprocessor, where each has so many on the average.
double turns_of(const MatrixTile& tile, double blocks) {
  const auto sums = static_cast<double>(tile.block_rows() * tile.block_columns());
  return blocks * sums < kFewTiles * kLargeTile ? std::ceil(blocks) : blocks;
}

}  // namespace

double matrix_cycles(const StageGraph& graph, const MatrixTile& tile, const GpuMachine& machine,
                     int64_t parts) {
  const auto extent = [&](const std::vector<AxisId>& axes) {
    return constant_extent_of(graph, axes).value_or(kUnknown);
  };
  const auto whole = [&](const std::vector<AxisId>& axes, int64_t part) {
    return std::ceil(static_cast<double>(extent(axes)) / static_cast<double>(part));
  };
  double blocks = whole(tile.sides.rows, tile.block_rows()) *
                  whole(tile.sides.columns, tile.block_columns()) * static_cast<double>(parts);
  for (const AxisId axis : tile.sides.batch)
    blocks *= static_cast<double>(std::max<int64_t>(extent({axis}), 1));
  const double products = static_cast<double>(tile.warps() * tile.rows * tile.columns);
  const Fetches rows = fetches_of(graph, tile, true);
  const Fetches columns = fetches_of(graph, tile, false);
  const double issue = (products + rows.instructions + columns.instructions) / kSchedulers;
  const double tensor_cores =
      products * kProducts / (static_cast<double>(machine.matrix_lanes) * machine.warp_share);
  const double step =
      std::max({tensor_cores, (rows.bytes + columns.bytes) / machine.l2_bytes, issue});
  const double turns = turns_of(tile, blocks / static_cast<double>(machine.multiprocessors));
  const double steps = whole(tile.sum, tile.unit.steps * parts);
  const bool is_one_by_one = !are_fetched_side_by_side(graph, tile);
  const double waits = is_one_by_one ? kOneByOne : turns < 2 && tile.stages == 1 ? kAlone : 1;
  return step * steps * turns * waits + copy_cycles(graph, tile, machine) +
         stored_cycles(graph, tile.prologues, machine);
}

}  // namespace kiln::autoschedule
