// Copies of factors for tiles of matrix instructions, which fetch 16 bytes at a time.
//
//   A[i, k] with 4091 steps
//     ->  A.global[i, k / 64, k % 64]: rows of 64 lines, the last of which is filled with the last
//         element (fill_tiles)
//
// So each row begins at a multiple of 16 bytes, and what a block fetches of it is whole. It reads
// as it is stored, neighbours side by side.
#include "compiler/autoschedule/templates/factor_copies.h"

#include <algorithm>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/templates/contraction_loops.h"

namespace kiln::autoschedule {
namespace {

constexpr int64_t kThreads = 256;
constexpr int64_t kTurns = 8;  // rows of a thread, whose loads are under way together

/// The axes in this order that the factor is read by.
std::vector<AxisId> used_of(const StageGraph& graph, const ir::TensorRead& read,
                            std::vector<AxisId> axes) {
  std::erase_if(axes, [&](AxisId axis) { return !is_used_in(graph, read, axis); });
  return axes;
}

/// A thread an element.
FetchedFactor with_side_last(const StageGraph& graph, const MatrixTile& tile,
                             const ir::TensorRead& read, const std::vector<AxisId>& side,
                             StepWriter& steps) {
  const auto [copy, axes] =
      steps.cache_read({read.stage, read.output}, tile.stage,
                       used_of(graph, read, joined({tile.sides.batch, tile.sum, side})));
  const auto [block, thread] = steps.split(copy, steps.fuse(copy, axes), kThreads);
  steps.bind(copy, block, "blockIdx.x");
  steps.bind(copy, thread, "threadIdx.x");
  return {{copy, 0}, tile.stage, 2, {copy, 0}};
}

/// Lines and places in them have loops of their own, so that nothing is divided to find them.
void bind_lines(StageId copy, const std::vector<AxisId>& loops, int64_t width, StepWriter& steps) {
  const AxisId line = loops[loops.size() - 2];
  const AxisId place = loops.back();
  const int64_t rows = std::max<int64_t>(kThreads / width, 1);
  const AxisId all = steps.fuse(copy, {loops.begin(), loops.end() - 2});
  const auto [block, own] = steps.split(copy, all, kTurns * rows);
  const auto [turn, row] = steps.split(copy, own, rows);
  steps.reorder(copy, {block, row, line, place, turn});
  steps.bind(copy, block, "blockIdx.x");
  steps.bind(copy, row, "threadIdx.y");
  steps.bind(copy, line, "blockIdx.y");
  steps.bind(copy, place, "threadIdx.x");
  steps.unroll(copy, turn);
}

FetchedFactor in_lines(const StageGraph& graph, const MatrixTile& tile, const ir::TensorRead& read,
                       const std::vector<AxisId>& side, const Panel& panel, StepWriter& steps) {
  const auto& [across, along] =
      panel.is_along_sum ? std::pair(side, tile.sum) : std::pair(tile.sum, side);
  const auto [rows, axes] =
      steps.cache_read({read.stage, read.output}, tile.stage,
                       used_of(graph, read, joined({tile.sides.batch, across, along})));
  // Its loops are the layout of what it is computed from then, and it is read from there.
  steps.split(rows, axes.back(), panel.width);
  const auto [copy, loops] = steps.cache_write(rows, "global");
  steps.compute_inline(rows);
  bind_lines(copy, loops, panel.width, steps);
  return {{copy, 0}, rows, 3, {rows, 0}};
}

}  // namespace

FetchedFactor fetched_factor(const StageGraph& graph, const MatrixTile& tile, bool is_of_rows,
                             StepWriter& steps) {
  const Contraction& product = tile.contraction;
  const ir::TensorRead& read = is_of_rows ? *product.row_factor : *product.column_factor;
  const std::vector<AxisId>& side = is_of_rows ? tile.sides.rows : tile.sides.columns;
  switch (is_of_rows ? tile.row_packing : tile.column_packing) {
    case Packing::SideLast: return with_side_last(graph, tile, read, side, steps);
    case Packing::Lines:
      return in_lines(graph, tile, read, side, panel_of(graph, tile, is_of_rows), steps);
    case Packing::None: break;
  }
  const language::TensorId tensor{read.stage, read.output};
  return {tensor, tile.stage, 2, tensor};
}

}  // namespace kiln::autoschedule
