// Writes a batch of small products with the batch along the vectors: each lane is a product.
//
//   for i_tiles, b_tiles, j_tiles, k:  4 x 6 vectors of C[i, j, b..b+15] += A[..] * B[..]
//
// A factor whose batch is not innermost is copied into that layout first (packing, as of compact
// batched BLAS: Kim et al., Designing vector-friendly compact BLAS and LAPACK kernels, SC 2017).
#include "compiler/autoschedule/templates/batch_sketches.h"

#include <algorithm>

#include "compiler/autoschedule/recognise/side_by_side.h"
#include "compiler/autoschedule/templates/contraction_loops.h"
#include "compiler/autoschedule/templates/stage_cycles.h"
#include "compiler/ir/build.h"

namespace kiln::autoschedule {
namespace {

/// An axis as the loop over its tiles and the loop in one.
struct Tile {
  AxisId axis;
  AxisId tiles;
  AxisId inner;
};

/// A copy in the order of the loops, made in the order in which the factor lies.
void write_copy(const StageGraph& graph, const SideBySide& product,
                const SideBySide::Factor& factor, const Tile& own, const Tile& batch,
                StepWriter& steps, bool parallel) {
  const std::vector<AxisId> all = axes_of(graph, product.stage);
  std::vector<AxisId> layout;
  for (const AxisId axis : product.outer) {
    if (is_used_in(graph, *factor.read, axis)) layout.push_back(axis);
  }
  layout.insert(layout.end(), {batch.tiles, own.tiles});
  for (const AxisId axis : graph[product.stage].reduce) {
    if (is_used_in(graph, *factor.read, axis)) layout.push_back(axis);
  }
  layout.insert(layout.end(), {own.inner, batch.inner});
  const auto [copy, axes] =
      steps.cache_read({factor.read->stage, factor.read->output}, product.stage, layout);
  const auto copied = [&, &made = axes](AxisId loop) {
    return made[static_cast<size_t>(std::ranges::find(layout, loop) - layout.begin())];
  };
  std::vector<AxisId> order;
  for (const ir::Expr& index : factor.read->indices) {
    const AxisId axis = axis_of(graph, all, index).value();
    if (axis == product.batch) {
      order.push_back(copied(batch.tiles));
    } else if (axis == own.axis) {
      order.insert(order.end(), {copied(own.tiles), copied(own.inner)});
    } else {
      order.push_back(copied(axis));
    }
  }
  order.push_back(axes.back());
  steps.reorder(copy, order);
  steps.vectorize(copy, axes.back());
  if (parallel) steps.parallel(copy, order[0]);
}

void write_side_by_side(const StageGraph& graph, const SideBySide& product, StepWriter& steps,
                        const Values& values) {
  const StageId id = product.stage;
  const bool parallel = values.get("parallel", 0) != 0;
  const auto split = [&](AxisId axis, std::string_view factor) {
    const auto [tiles, inner] = split_tile(graph, steps, id, axis, values.get(factor, 1));
    return Tile{axis, tiles, inner};
  };
  const Tile rows = split(product.rows.own, "rows");
  const Tile columns = split(product.columns.own, "columns");
  const Tile batch = split(product.batch, "lanes");
  steps.reorder(id, joined({product.outer,
                            {rows.tiles, batch.tiles, columns.tiles},
                            graph[id].reduce,
                            {rows.inner, columns.inner, batch.inner}}));
  if (product.rows.is_apart) write_copy(graph, product, product.rows, rows, batch, steps, parallel);
  if (product.columns.is_apart)
    write_copy(graph, product, product.columns, columns, batch, steps, parallel);
  steps.vectorize(id, batch.inner);
  steps.unroll(id, rows.inner);
  steps.unroll(id, columns.inner);
  if (parallel)
    parallel_outer(graph, steps, id, joined({product.outer, {rows.tiles, batch.tiles}}));
}

}  // namespace

std::vector<Sketch> batch_sketches(const Chooser& chooser, StageId id, bool may_be_parallel) {
  const StageGraph& graph = chooser.graph;
  const std::optional<SideBySide> product = find_side_by_side(graph, id);
  if (!product || !may_have_vectors(graph, *product)) return {};
  if ((product->rows.is_apart || product->columns.is_apart) && !may_be_parallel) return {};
  int64_t lanes = register_lanes(chooser, id);
  lanes = std::min(lanes, constant_extent(graph, product->batch).value_or(lanes));
  // 4 x 6 sums and what they load fill 32 registers; 2 x 4 fit the 16 of AVX2.
  const bool is_wide = chooser.machine.vectors.registers >= 32;
  return {{.name = "products side by side",
           .parameters = {tile_parameter(graph, "rows", product->rows.own, {1, 2, 4, 6},
                                         is_wide ? 4 : 2),
                          tile_parameter(graph, "columns", product->columns.own, {1, 2, 4, 6},
                                         is_wide ? 6 : 4),
                          {"lanes", {lanes}, lanes},
                          parallel_parameter(may_be_parallel && is_worth_sharing(chooser, id))},
           .write = [&graph, product = *product](StepWriter& steps, const Values& values) {
             write_side_by_side(graph, product, steps, values);
           }}};
}

}  // namespace kiln::autoschedule
