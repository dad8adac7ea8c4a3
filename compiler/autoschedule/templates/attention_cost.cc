// What an attention takes in blocks of threads, and as launches that store the scores.
//
// A block reads all keys and values that its queries see: more queries share them, and fewer make
// more blocks. Without tensor cores a thread multiplies rows by columns that it has loaded from
// shared memory, of which 128 bits take a warp four cycles.
#include "compiler/autoschedule/templates/attention_cost.h"

#include <algorithm>

#include "compiler/autoschedule/templates/tile_cost.h"
#include "compiler/ir/matrix_unit.h"
#include "compiler/ir/stmt.h"
#include "compiler/tile/shared_steps.h"

namespace kiln::autoschedule {
namespace {

using tile::HeadParts;
using tile::ThreadBlock;
using tile::ThreadedWork;

// Queries and keys of so many numbers are in shared memory whole, in one of the blocks.
constexpr int64_t kNarrow = 128;
// Instructions for each score beside its products, of which one is an exponential (docs/gpu.md).
constexpr double kScoreInstructions = 7;
constexpr double kFunctionLanes = 16;  // CUDA C++ programming guide, native arithmetic instructions
// Cycles of shared memory for each sum of a thread that four of them have added up.
constexpr double kGiven = 6;
// A block waits for what it copies, and at barriers, three times in a part of the keys.
constexpr double kWaits = kLoadCycles + 200;
// What products come to of what their units could do at best (docs/gpu.md), and launches that store
// scores of what is counted of them here, as their loops are predicted: half as much again at
// least.
constexpr double kProductShare = 0.85;
constexpr double kStoredMore = 1.5;
// Scores and weights are written and read, each once.
constexpr double kMovesOfScore = 4;
constexpr double kStoredLaunches = 4;
// Several queries that fill no tile of products read all keys and values each, of which L2 gives
// them a quarter of what it could, likewise.
constexpr double kFewQueries = 16;
constexpr double kFewQueriesShare = 0.25;

/// Cycles of one part of the keys of one block.
struct PartCycles {
  double products;
  double shared;
  double issue;
  double copied;  // from L2
};

PartCycles cycles_of_part(const ThreadedWork& work, const ThreadBlock& block,
                          const HeadParts& parts, const GpuMachine& machine) {
  const auto queries = static_cast<double>(block.queries);
  const auto keys = static_cast<double>(block.keys);
  const auto depth = static_cast<double>(work.depth);
  const auto columns = static_cast<double>(parts.columns);
  const double numbers = depth + columns;
  // Queries that a block has no room for are copied again.
  const double copied = keys * numbers + (parts.depth < work.depth ? queries * depth : 0);
  const auto warps = static_cast<double>(warps_of(work, block));
  const double products = queries * keys * numbers;
  const double scores = queries * keys;
  PartCycles cycles{};
  const double others =
      std::max(scores * kScoreInstructions / (ir::kWarp * kSchedulers), scores / kFunctionLanes);
  if (work.has_matrices) {
    cycles.products = products / (static_cast<double>(machine.matrix_lanes) * machine.warp_share);
    // Each warp loads all keys and values; its own queries and weights once.
    const double bytes = 2 * (warps * keys * numbers + copied + queries * depth + 2 * scores);
    cycles.shared = bytes / kSharedBytes;
    cycles.copied = 2 * copied / machine.l2_bytes;
    cycles.issue = others + products /
                                static_cast<double>(ir::kMatrixRows * ir::kMatrixColumns * 16) /
                                kSchedulers;
    return cycles;
  }
  cycles.products = products / static_cast<double>(machine.float_lanes);
  const double threads = warps * ir::kWarp;
  const double rows = queries * 16 / threads;  // of a thread; 16 have a row
  // Where four threads share the steps, they give each other three of their sums for each.
  const double loaded = depth * (rows + keys / 16);
  const bool is_shared = tile::are_steps_shared(static_cast<int64_t>(rows), block.keys / 16);
  const double given =
      kGiven * rows * keys / 16 * ceil_div(depth, static_cast<double>(parts.depth));
  const double of_scores = is_shared ? loaded / 2 + given : loaded;
  const double of_sums = keys * (rows + columns / 16);
  cycles.shared = warps * (of_scores + of_sums) + 2 * (scores + copied) / ir::kWarp;
  cycles.copied = 4 * copied / machine.l2_bytes;
  cycles.issue = others + products / static_cast<double>(ir::kWarp * kSchedulers);
  return cycles;
}

}  // namespace

std::optional<double> attention_cycles(const ThreadedWork& work, const ThreadBlock& block,
                                       const HeadParts& parts, const GpuMachine& machine,
                                       const ir::GpuArch& arch) {
  if (parts.depth < work.depth && work.depth <= kNarrow) return std::nullopt;
  const int64_t bytes = tile::shared_bytes_of(work, block, parts);
  if (bytes > arch.shared_bytes_of_block ||
      tile::sums_of_thread(work, block, parts) > tile::kMostSums)
    return std::nullopt;
  const auto at_once =
      static_cast<double>(std::max<int64_t>(arch.shared_bytes / (bytes + arch.uncounted_bytes), 1));
  const auto multiprocessors = static_cast<double>(machine.multiprocessors);
  const double blocks =
      work.heads * ceil_div(work.queries, static_cast<double>(block.queries)) *
      ceil_div(static_cast<double>(work.width), static_cast<double>(parts.columns));
  const double turns = ceil_div(blocks, multiprocessors);
  const double parts_of_keys = ceil_div(work.keys, static_cast<double>(block.keys)) * work.seen;
  const PartCycles part = cycles_of_part(work, block, parts, machine);
  const double busy = std::max({part.products, part.shared, part.issue, part.copied});
  const double waits =
      ceil_div(static_cast<double>(work.depth), static_cast<double>(parts.depth)) * kWaits;
  // Blocks at once wait together.
  const double together = std::min(at_once, turns);
  const double alone = together > 1 ? 0 : part.issue - std::min(part.issue, part.products);
  return turns * parts_of_keys * (busy + alone) + turns / together * parts_of_keys * waits;
}

double stored_attention_cycles(const ThreadedWork& work, const GpuMachine& machine) {
  const double scores = work.heads * work.queries * work.keys;
  const auto depth = static_cast<double>(work.depth);
  const auto width = static_cast<double>(work.width);
  const double numbers = depth + width;
  const auto lanes = static_cast<double>(machine.float_lanes);
  const double of_scores =
      work.has_matrices ? static_cast<double>(machine.matrix_lanes) * machine.warp_share : lanes;
  // Weights that are computed where they are multiplied are no factor of tensor cores.
  const double of_sums = work.has_stage_of_weights ? of_scores : lanes;
  const auto multiprocessors = static_cast<double>(machine.multiprocessors);
  const double products =
      scores * (depth / of_scores + width / of_sums) / kProductShare / multiprocessors;
  const double element = work.has_matrices ? 2 : 4;
  const double read = work.heads * (work.queries + work.keys) * numbers * element;
  const bool stay = scores * element + read <= static_cast<double>(machine.l2_size);
  double moved = (scores * kMovesOfScore * element + read) /
                 ((stay ? machine.l2_bytes : machine.memory_bytes) * multiprocessors);
  if (work.queries > 1 && work.queries <= kFewQueries)
    moved += scores * numbers * element / (machine.l2_bytes * multiprocessors * kFewQueriesShare);
  return kStoredMore * (products + moved) +
         (kStoredLaunches - 1) * kLaunchSeconds * machine.gigahertz * 1e9;
}

}  // namespace kiln::autoschedule
