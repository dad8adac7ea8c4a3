// Decides whether products whose batch is the last axis are better computed one after the other, in
// tiles as other products are, and transposed at the end; or with the batch in vectors.
//
//   C[i, j, b] = sum[k](A[b, i, k] * B[b, k, j])  ->  T[b, i, j] = sum[k](..); C = T transposed
//
// By the cycles of each: large products have their factors in L2 one at a time, but not 16 at once.
#include "compiler/autoschedule/templates/transposed_products.h"

#include <algorithm>
#include <cmath>

#include "compiler/autoschedule/recognise/side_by_side.h"
#include "compiler/autoschedule/templates/contraction_loops.h"
#include "compiler/autoschedule/templates/few_columns.h"
#include "compiler/autoschedule/templates/stage_schedules.h"
#include "compiler/autoschedule/templates/tile_cost.h"

namespace kiln::autoschedule {
namespace {

// A result that is transposed is read and stored, each in squares that registers turn.
constexpr double kTurns = 2;
// What a multiply-add of products side by side loads, in vectors: both factors, of which sums in
// registers share some. By 8 to 541 steps on Sapphire Rapids.
constexpr double kLoadsSideBySide = 1.6;
// The factors of as many products as a vector has lanes may take so much of L2; past that the time
// grows in proportion.
constexpr double kOfL2 = 0.8;

struct Extents {
  int64_t batch = 1;
  ContractionSize size;
  double copied_cycles = 0;  // for an element of a factor that is copied, and of a result that is
  double turned_cycles = 0;  // transposed
};

std::optional<Extents> extents_of(const Chooser& chooser, const SideBySide& product) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[product.stage];
  const Machine& machine = chooser.machine;
  Extents found{.size = size_on(machine, register_lanes(chooser, product.stage)),
                .copied_cycles = machine.copied_row_cycles,
                .turned_cycles = kTurns * machine.transposed_cycles};
  found.size.rows = found.size.columns = found.size.steps = 1;
  const auto multiply = [&](int64_t& count, AxisId axis) {
    const int64_t extent = constant_extent(graph, axis).value_or(0);
    count = std::min(count, int64_t{1} << 30) * std::clamp<int64_t>(extent, 0, int64_t{1} << 30);
    return extent > 0;
  };
  bool is_known = multiply(found.batch, product.batch) &&
                  multiply(found.size.rows, product.rows.own) &&
                  multiply(found.size.columns, product.columns.own);
  for (const AxisId axis : stage.reduce)
    is_known = is_known && multiply(found.size.steps, axis);
  return is_known ? std::optional(found) : std::nullopt;
}

/// Cycles of all products, a vector of them at once.
double cycles_side_by_side(const SideBySide& product, const Extents& extents) {
  const ContractionSize& size = extents.size;
  const auto row_elements = static_cast<double>(size.rows * size.steps);
  const auto column_elements = static_cast<double>(size.columns * size.steps);
  const auto lanes = static_cast<double>(size.register_lanes);
  const double near = kOfL2 * static_cast<double>(size.l2_elements);
  const double far = (row_elements + column_elements) * lanes / near;
  const double sums =
      row_elements * static_cast<double>(size.columns) * kLoadsSideBySide / size.loads;
  const double copied =
      (product.rows.is_apart ? row_elements : 0) + (product.columns.is_apart ? column_elements : 0);
  return std::ceil(static_cast<double>(extents.batch) / lanes) * sums * std::max(far, 1.0) +
         static_cast<double>(extents.batch) * copied * extents.copied_cycles;
}

/// Whether neighbours along the factor's own axis are neighbours in memory.
bool lies_together(const StageGraph& graph, const SideBySide::Factor& factor) {
  return is_contiguous_in(graph, *factor.read, factor.own);
}

/// Cycles of all products, one after the other, and of transposing the result.
double cycles_transposed(const StageGraph& graph, const SideBySide& product,
                         const Extents& extents) {
  const ContractionSize& size = extents.size;
  const auto steps = static_cast<double>(size.steps);
  const auto rows = static_cast<double>(size.rows);
  const auto columns = static_cast<double>(size.columns);
  const double copied = (product.rows.is_apart ? 0 : rows * steps) +
                        (lies_together(graph, product.columns) ? 0 : columns * steps);
  return static_cast<double>(extents.batch) *
         (tile_cycles(size, best_tile(size)) + copied * extents.copied_cycles +
          rows * columns * extents.turned_cycles);
}

bool gains_by_transposing(const Chooser& chooser, const SideBySide& product) {
  const std::optional<Extents> extents = extents_of(chooser, product);
  return extents && cycles_transposed(chooser.graph, product, *extents) <
                        cycles_side_by_side(product, *extents);
}

/// Its rows and columns the other way round, where only so the columns lie together.
void choose_columns(const StageGraph& graph, SideBySide& product) {
  const std::vector<AxisId> data = columns_of(graph[product.stage]);
  if (std::ranges::find(data, product.rows.own) > std::ranges::find(data, product.columns.own))
    std::swap(product.rows, product.columns);
  if (lies_together(graph, product.rows) && !lies_together(graph, product.columns))
    std::swap(product.rows, product.columns);
}

/// The order of the loops over data in which the products come one after the other, where that
/// gains.
std::optional<std::vector<AxisId>> batch_first(const Chooser& chooser, StageId id) {
  std::optional<SideBySide> product = find_side_by_side(chooser.graph, id);
  if (!product) return std::nullopt;
  choose_columns(chooser.graph, *product);
  if (!gains_by_transposing(chooser, *product)) return std::nullopt;
  return joined({product->outer, {product->batch, product->rows.own, product->columns.own}});
}

}  // namespace

OpenSchedule with_transposed_products(const language::Kernel& kernel, language::Schedule given,
                                      const Target& target, const CompileOptions& options) {
  OpenSchedule result{std::move(given), {}};
  const StageGraph graph = graph_of(kernel, result);
  const std::vector<bool> touched = touched_roots(graph);
  const Chooser chooser{graph, options, machine_of(target.arch)};
  StepWriter steps(result.schedule, graph);
  for (const StageId id : graph.stage_of_id) {
    if (!is_free(graph, id) || touched[id]) continue;
    std::optional<std::vector<AxisId>> order = batch_first(chooser, id);
    if (!order) order = rows_last(chooser, id);
    if (!order) continue;
    steps.reorder(id, *order);
    result.open.insert(result.open.end(), {id, steps.cache_write(id, "global").first});
  }
  result.schedule = std::move(steps).schedule();
  return result;
}

}  // namespace kiln::autoschedule
