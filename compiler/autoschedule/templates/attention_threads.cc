// An attention as one launch that stores no score (tile/thread_attention.h), in the block that
// takes the least; or, of few queries and of heads of more than kMostNumbers numbers, as launches
// that store them, by what each takes.
//
//   32 heads of 2048 queries and keys of 64 numbers, float32, on an H100
//     ->  128 queries and 64 keys a block: 512 blocks, four for each multiprocessor
//
// Scores of all queries and keys are what an attention has no memory for: they grow with the square
// of its length, so they are stored of no head that a block has a form for, also where that is
// predicted to take less time.
#include "compiler/autoschedule/templates/attention_threads.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "compiler/autoschedule/templates/attention_cost.h"
#include "compiler/tile/part_sizes.h"
#include "compiler/tile/thread_attention.h"
#include "runtime/core/error.h"
#include "runtime/core/gpu_name.h"

namespace kiln::autoschedule {
namespace {

using tile::HeadParts;
using tile::ThreadBlock;
using tile::ThreadedWork;

constexpr ThreadBlock kBlocks[] = {{128, 64}, {128, 32}, {64, 64}, {64, 32},
                                   {32, 32},  {32, 16},  {16, 16}};
// Heads of so many numbers store no scores.
constexpr int64_t kMostNumbers = 1024;
// Queries are few that see so many times as many keys.
constexpr double kManyKeys = 8;

/// Whether launches that store the scores are an answer: of queries that fill no block, and of a
/// few that see many keys, which have no more room for scores than for keys, other blocks may
/// compute parts side by side.
bool may_store_scores(const ThreadedWork& work) {
  if (std::max(work.depth, work.width) > kMostNumbers) return true;
  const bool are_few = work.queries * kManyKeys <= work.keys;
  return work.queries < static_cast<double>(tile::kLeast) ||
         (are_few && work.queries <= static_cast<double>(work.depth));
}

Sketch threaded(StageId last, const ThreadBlock& block) {
  return {.name = fmt::format("scores not stored, {} queries and {} keys a block", block.queries,
                              block.keys),
          .parameters = {},
          .write = [last, block](StepWriter& steps, const Values&) {
            steps.thread_block(last, block.queries, block.keys);
          }};
}

/// All stages as they are preferred without it.
Sketch stored(std::vector<StageSketches> stages) {
  const auto kept = std::make_shared<std::vector<StageSketches>>(std::move(stages));
  return {
      .name = "scores stored", .parameters = {}, .write = [kept](StepWriter& steps, const Values&) {
        for (const StageSketches& stage : *kept)
          stage.sketches[0].write_preferred(steps);
      }};
}

/// The blocks that fit the architecture, with the cycles of each; none where a kernel is no
/// attention that threads do.
struct Blocks {
  ThreadedWork work;
  std::vector<std::pair<double, ThreadBlock>> that_fit;
};
Blocks blocks_of(const language::Kernel& kernel, std::string_view arch) {
  Blocks blocks;
  const std::string_view code = without_figures(arch);
  try {
    blocks.work = tile::threaded_work(kernel, code);
  } catch (const Error& error) {
    if (error.reason() != "TILE_FORM") throw;
    return blocks;
  }
  const GpuMachine machine = gpu_machine(arch);
  const ir::GpuArch limits = ir::gpu_arch(code);
  for (const ThreadBlock& block : kBlocks) {
    const HeadParts parts = tile::parts_of(blocks.work, block, code);
    const auto cycles = attention_cycles(blocks.work, block, parts, machine, limits);
    if (cycles) blocks.that_fit.emplace_back(*cycles, block);
  }
  return blocks;
}

}  // namespace

bool is_unstored_attention(const language::Kernel& kernel, std::string_view arch) {
  const Blocks blocks = blocks_of(kernel, arch);
  return !blocks.that_fit.empty() && !may_store_scores(blocks.work);
}

std::vector<StageSketches> threaded_attention(const language::Kernel& kernel,
                                              const StageGraph& graph, std::string_view arch,
                                              const StageSpace& stages) {
  const Blocks blocks = blocks_of(kernel, arch);
  if (blocks.that_fit.empty()) return stages();
  const StageId output = graph.stage_of_id[blocks.work.output];
  std::vector<std::pair<double, Sketch>> sketches;
  for (const auto& [cycles, block] : blocks.that_fit)
    sketches.emplace_back(cycles, threaded(output, block));
  if (may_store_scores(blocks.work))
    sketches.emplace_back(stored_attention_cycles(blocks.work, gpu_machine(arch)),
                          stored(stages()));
  return {{output, cheapest_first(std::move(sketches))}};
}

}  // namespace kiln::autoschedule
