// Products of few tiles and long sums: each part of the sum has tiles of its own.
//
//   32 x 4096 x 4096 on 132 multiprocessors: 32 tiles of 32 x 128; 256 of them in 8 parts
#include "compiler/autoschedule/templates/split_products.h"

#include <algorithm>
#include <utility>

#include "compiler/autoschedule/recognise/sides.h"
#include "compiler/autoschedule/templates/block_tiles.h"
#include "compiler/autoschedule/templates/gpu_machine.h"
#include "compiler/autoschedule/templates/matrix_tiles.h"
#include "compiler/ir/build.h"

namespace kiln::autoschedule {
namespace {

// Steps of a part: what begins and ends a tile is little beside them, more of matrix instructions.
constexpr int64_t kLeastSteps = 96;
constexpr int64_t kLeastOfMatrices = 128;
// Of a row of a factor: tiles fetch a multiple of so much at once, and of what they do not the last
// part has all.
constexpr int64_t kBytesOfTiles = 64;

/// Of all that is read; nothing where that is not known.
std::optional<double> bytes_of(const StageGraph& graph, const ir::TensorRead& read) {
  auto bytes = static_cast<double>(size_of(read.type.element));
  for (const ir::Expr& extent : graph[read.stage].shapes[read.output]) {
    const std::optional<int64_t> length = ir::as_const_int(extent);
    if (!length) return std::nullopt;
    bytes *= static_cast<double>(*length);
  }
  return bytes;
}

}  // namespace

std::optional<SumSplit> split_of_product(const Chooser& chooser, StageId id) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  const std::optional<Factors> factors = find_factors(graph, id, FactorForm::Computed);
  const auto results = constant_extent_of(graph, stage.data);
  const auto sum = constant_extent_of(graph, stage.reduce);
  if (!factors || !results || !sum) return std::nullopt;
  CyclesOfParts tiles = matrix_tile_cycles(chooser, id);
  CyclesOfParts blocks = block_tile_cycles(chooser, id);
  const bool has_matrices = tiles && (!blocks || tiles(1) <= blocks(1));
  if (!has_matrices) tiles = std::move(blocks);
  const auto a = bytes_of(graph, *factors->a);
  const auto b = bytes_of(graph, *factors->b);
  if (!tiles || !a || !b) return std::nullopt;
  const GpuMachine machine = gpu_machine(chooser.arch);
  const double result_bytes = static_cast<double>(*results) * size_of(stage.types[0]);
  const double memory = (*a + *b + result_bytes) /
                        (machine.memory_bytes * static_cast<double>(machine.multiprocessors));
  const auto cycles = [&](int64_t parts) { return std::max(tiles(parts), memory); };
  const AxisId axis = *longest_axis(graph, stage.reduce);
  const int64_t extent = *constant_extent(graph, axis);
  const int64_t narrowest =
      std::min(size_of(factors->a->type.element), size_of(factors->b->type.element));
  const int64_t steps = has_matrices ? kLeastOfMatrices : kLeastSteps;
  const int64_t least = std::max<int64_t>(steps * extent / *sum, 1);
  // What only some parts have is no matrix instruction in any of them.
  const bool may_differ = extent == *sum && !has_matrices;
  return best_split(chooser, id, axis,
                    may_differ ? lengths_in_steps(least, kBytesOfTiles / narrowest)
                               : equal_lengths(least, kVectorBytesOfThread / narrowest),
                    cycles);
}

}  // namespace kiln::autoschedule
