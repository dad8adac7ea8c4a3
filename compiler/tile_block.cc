// Blocks of code made of tiles: those that a schedule names, and those that `tune` compares.
//
//   C[4096, 4096] = sum[k](A * B) of bfloat16, for an H100
//     ->  128 x 256 sums of 64 steps by 8 warps; 256 x 128, 128 x 128, 64 x 256; the first of 32
//         steps, and by as many warps as the assembler thinks best
//
// Of blocks that are predicted to take the same time the one that reads less of its factors for
// each product comes first.
#include "compiler/tile_block.h"

#include <algorithm>
#include <array>
#include <string>
#include <tuple>

#include "compiler/autoschedule/templates/gpu_machine.h"
#include "compiler/language/tables/hints.h"
#include "compiler/predict/predict_tiles.h"
#include "compiler/tile/attention.h"
#include "compiler/tile_ways.h"
#include "runtime/core/error.h"
#include "runtime/core/gpu_name.h"

namespace kiln {
namespace {

using language::PragmaKind;

constexpr std::array<int64_t, 3> kSides = {64, 128, 256};
constexpr int64_t kMostSums = 128 * 256;  // of a block: what the registers of two warpgroups hold
constexpr int64_t kManyWarps = 8;
constexpr size_t kOtherSides = 3;

/// A block, and what is known of it without machine code.
struct Tried {
  TileBlock block;
  double seconds = 0;
  double read = 0;  // elements of factors for each product
};

class Blocks {
 public:
  Blocks(const language::Kernel& kernel, const Target& target, const CompileOptions& options)
      : kernel_(kernel),
        options_(options),
        arch_(without_figures(target.arch)),
        machine_(autoschedule::gpu_machine(target.arch)) {}

  std::vector<TileBlock> run() {
    const std::vector<TileWay> ways = tile_ways(kernel_, arch_, options_);
    for (const Tiled& tiled : ways[0].tiled)
      add(tiled.block);
    if (tile::is_attention(kernel_)) return std::move(found_);
    const TileBlock taken = found_[0];
    for (const Tried& other : others(taken))
      add(other.block);
    TileBlock shorter = taken;
    shorter.steps = *taken.steps / 2;
    add(shorter);
    TileBlock wider = taken;
    wider.warps = *taken.warps == kManyWarps ? 0 : kManyWarps;
    add(wider);
    return std::move(found_);
  }

 private:
  void add(const TileBlock& block) {
    if (std::ranges::count(found_, block) == 0) found_.push_back(block);
  }

  /// The best of other sides.
  std::vector<Tried> others(const TileBlock& taken) const {
    std::vector<Tried> tried;
    for (const int64_t rows : kSides) {
      for (const int64_t columns : kSides) {
        const bool is_taken = rows == taken.rows && columns == taken.columns;
        if (is_taken || rows * columns > kMostSums) continue;
        const TileBlock block{.rows = rows,
                              .columns = columns,
                              .steps = taken.steps,
                              .warps = rows * columns == kMostSums ? kManyWarps : 0};
        if (const std::optional<double> seconds = seconds_of(block))
          tried.push_back({block, *seconds, 1.0 / double(rows) + 1.0 / double(columns)});
      }
    }
    std::ranges::sort(tried, {}, [](const Tried& each) {
      return std::tuple(each.seconds, each.read, *each.block.columns);
    });
    if (tried.size() > kOtherSides) tried.resize(kOtherSides);
    return tried;
  }

  /// Of sizes that the call brings, a guess.
  std::optional<double> seconds_of(const TileBlock& block) const {
    constexpr int64_t kGuess = 4096;
    try {
      CompileOptions options = options_;
      options.block = block;
      const std::vector<TileWay> ways = tile_ways(kernel_, arch_, options);
      const std::vector<int64_t> sizes(ways[0].sequence().last().sizes.size(), kGuess);
      return predict::predict_tiles(ways[0].sequence(), sizes, machine_).seconds();
    } catch (const Error& error) {
      if (error.reason() != "TILE_FORM") throw;
      return std::nullopt;
    }
  }

  const language::Kernel& kernel_;
  const CompileOptions& options_;
  const std::string arch_;
  const autoschedule::GpuMachine machine_;
  std::vector<TileBlock> found_;
};

}  // namespace

std::optional<TileBlock> tile_block_of(const language::Schedule& schedule) {
  TileBlock block;
  for (const language::Step& step : schedule.steps) {
    if (step.kind != language::StepKind::Pragma) continue;
    switch (language::find_pragma(step.tag).value_or(PragmaKind::ImportC)) {
      case PragmaKind::TileRows: block.rows = step.value; break;
      case PragmaKind::TileColumns: block.columns = step.value; break;
      case PragmaKind::TileSteps: block.steps = step.value; break;
      case PragmaKind::TileWarps: block.warps = step.value; break;
      default: break;
    }
  }
  if (block == TileBlock{}) return std::nullopt;
  return block;
}

std::vector<TileBlock> tile_blocks(const language::Kernel& kernel, const Target& target,
                                   const CompileOptions& options) {
  if (!target.traits().has_threads || !options.untouched || options.strict) return {};
  try {
    return Blocks(kernel, target, options).run();
  } catch (const Error& error) {
    if (error.reason() != "TILE_FORM") throw;
    return {};
  }
}

}  // namespace kiln
