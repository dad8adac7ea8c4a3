// What a tile of a contraction costs on a GPU: the slowest of its instructions, its shared memory
// and its L2 traffic, for as many blocks as the busiest multiprocessor gets.
//
//   1024 x 1024 on 132 multiprocessors: 64 x 64 is 256 blocks, 128 x 128 only 64, of which each
//   has one alone; 4096 x 4096 has enough of the larger, which read half as much
#include "compiler/autoschedule/templates/block_tile_cost.h"

#include <algorithm>
#include <cmath>

namespace kiln::autoschedule {
namespace {

constexpr double kWarps = kThreadsOfSide * kThreadsOfSide / 32.0;
constexpr double kVectorBytes = 16;  // of one load from shared memory
// Of instructions that could be issued, and of cycles in which the last block of a multiprocessor
// waits at a barrier and for the loads behind it, with nobody to take its turn: products of 512^3
// to 4096^3 on an H200, whose measured times these give to 7 percent (docs/gpu.md).
constexpr double kIssued = 0.8;
constexpr double kBarrier = 100;
// For each step of the reduction beside products and their loads: barriers, fetches, the loop. Main
// loops of 16 steps have about 40 of them.
constexpr double kLoopInstructions = 2.5;

double whole(int64_t extent, int64_t part) {
  return std::ceil(static_cast<double>(extent) / static_cast<double>(part));
}

/// Of one step of the reduction in one block.
double cycles_of_step(const BlockProduct& product, const ThreadTile& tile,
                      const GpuMachine& machine) {
  const auto rows = static_cast<double>(tile.rows);
  const auto columns = static_cast<double>(tile.columns);
  const auto bytes = static_cast<double>(product.element_bytes);
  const double loads = (rows + columns) * bytes / kVectorBytes;
  const auto fetched_bytes = [&](const FetchWork& work) {
    return work.bytes > 0 ? work.bytes : bytes;
  };
  // A side's elements of the step are shared by the threads of the block.
  const auto computed_of = [&](double FetchWork::*what) {
    return (rows * (product.row_work.*what) + columns * (product.column_work.*what)) /
           kThreadsOfSide;
  };
  const double computed = computed_of(&FetchWork::instructions);
  const double arithmetic = kWarps * 32 *
                            (rows * columns + computed_of(&FetchWork::multiply_adds)) /
                            static_cast<double>(machine.float_lanes);
  const double issue =
      kWarps * (rows * columns + loads + computed + kLoopInstructions) / kSchedulers / kIssued;
  // What each thread of a warp gets, though others get the same, and what the block stores.
  const double shared = (kWarps * 32 + kThreadsOfSide) * (rows + columns) * bytes / kSharedBytes;
  const double fetched = kThreadsOfSide * (rows * fetched_bytes(product.row_work) +
                                           columns * fetched_bytes(product.column_work));
  return std::max({arithmetic, issue, shared, fetched / machine.l2_bytes});
}

}  // namespace

double block_cycles(const BlockProduct& product, const ThreadTile& tile, int64_t steps_at_once,
                    const GpuMachine& machine) {
  const double blocks = whole(product.rows, kThreadsOfSide * tile.rows) *
                        whole(product.columns, kThreadsOfSide * tile.columns) *
                        static_cast<double>(product.batch);
  const double turns = std::ceil(blocks / static_cast<double>(machine.multiprocessors));
  const double alone = turns < 2 ? kBarrier / static_cast<double>(steps_at_once) : 0;
  return static_cast<double>(product.steps) * turns *
         (cycles_of_step(product, tile, machine) + alone);
}

}  // namespace kiln::autoschedule
