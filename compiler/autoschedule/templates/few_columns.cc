// Decides whether a product of few columns has vectors of rows, and is transposed at the end.
//
//   C[i, j] = sum[k](A[k, i] * B[k, j]), 784 x 10  ->  T[j, i] = sum[k](..); C = T transposed
//
// So is the gradient of the weights of a layer with few outputs. Columns do not fill their vectors,
// and of a line of A a tile of rows takes a piece, while as vectors its rows lie side by side. By
// the cycles of each.
#include "compiler/autoschedule/templates/few_columns.h"

#include "compiler/autoschedule/templates/contraction_loops.h"
#include "compiler/autoschedule/templates/tile_cost.h"

namespace kiln::autoschedule {
namespace {

// A result that is transposed is read and stored, each in squares that registers turn.
constexpr double kTurns = 2;
// With so many vectors of columns they are filled well enough.
constexpr int64_t kManyVectors = 2;

/// Of a product whose row factor lies along its rows, in the type of the sums.
bool lies_along_rows(const StageGraph& graph, StageId id, const Contraction& product) {
  const Stage& stage = graph[id];
  const DType type = stage.types[0];
  return stage.reduce.size() == 1 && product.row_factor->type.element == type &&
         product.column_factor->type.element == type &&
         is_contiguous_in(graph, *product.row_factor, product.row);
}

double cycles_of(const ContractionSize& size) { return tile_cycles(size, best_tile(size)); }

bool gains_by_rows_last(const Chooser& chooser, StageId id, const Contraction& product) {
  const StageGraph& graph = chooser.graph;
  const auto extent = [&](AxisId axis) { return constant_extent(graph, axis).value_or(0); };
  ContractionSize size = size_on(chooser.machine, register_lanes(chooser, id));
  size.rows = extent(product.row);
  size.columns = extent(product.column);
  size.steps = extent(graph[id].reduce[0]);
  const bool is_known = size.rows > 0 && size.columns > 0 && size.steps > 0;
  if (!is_known || size.columns >= kManyVectors * size.register_lanes ||
      size.rows < kManyVectors * size.register_lanes) {
    return false;
  }
  const double elements = static_cast<double>(size.rows) * static_cast<double>(size.columns);
  ContractionSize swapped = size;
  std::swap(swapped.rows, swapped.columns);
  return cycles_of(swapped) + elements * kTurns * chooser.machine.transposed_cycles <
         cycles_of(size);
}

}  // namespace

std::optional<std::vector<AxisId>> rows_last(const Chooser& chooser, StageId id) {
  const std::optional<Contraction> product = find_contraction(chooser.graph, id);
  if (!product || !lies_along_rows(chooser.graph, id, *product) ||
      !gains_by_rows_last(chooser, id, *product)) {
    return std::nullopt;
  }
  std::vector<AxisId> order = chooser.graph[id].data;
  std::erase(order, product->row);
  order.push_back(product->row);
  return order;
}

}  // namespace kiln::autoschedule
