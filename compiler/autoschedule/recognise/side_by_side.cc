// Recognises products of a batch that is innermost in memory: the last data axis is in both
// factors, and each factor has one data axis of its own.
//
//   C[i, j, b] = sum[k](A[i, k, b] * B[k, j, b])     batch b, rows i of A, columns j of B
#include "compiler/autoschedule/recognise/side_by_side.h"

#include <algorithm>

#include "compiler/autoschedule/recognise/chooser.h"

namespace kiln::autoschedule {
namespace {

// Fewer products are no vector: the shortest register has as many lanes of float32.
constexpr int64_t kFewestProducts = 4;

/// Whether a copy has each element once.
bool may_be_copied(const StageGraph& graph, StageId id, const ir::TensorRead& read) {
  const std::vector<AxisId> axes = axes_of(graph, id);
  const bool is_own =
      graph[id].part_of || graph[id].role.cell_of >= 0 || graph[read.stage].role.cell_of >= 0;
  return !is_own && std::ranges::all_of(read.indices, [&](const ir::Expr& index) {
    return axis_of(graph, axes, index).has_value();
  });
}

}  // namespace

std::optional<AxisId> axis_of(const StageGraph& graph, const std::vector<AxisId>& axes,
                              const ir::Expr& index) {
  const auto found = std::ranges::find_if(
      axes, [&](AxisId axis) { return index == ir::Expr(graph.axes[axis].value); });
  return found == axes.end() ? std::nullopt : std::optional(*found);
}

std::vector<AxisId> axes_of(const StageGraph& graph, StageId id) {
  std::vector<AxisId> axes = columns_of(graph[id]);
  axes.insert(axes.end(), graph[id].reduce.begin(), graph[id].reduce.end());
  return axes;
}

std::optional<SideBySide> find_side_by_side(const StageGraph& graph, StageId id) {
  const std::optional<Factors> factors = find_factors(graph, id);
  std::vector<AxisId> axes = columns_of(graph[id]);
  if (!factors || axes.size() < 3) return std::nullopt;
  if (constant_extent(graph, axes.back()).value_or(kFewestProducts) < kFewestProducts)
    return std::nullopt;
  SideBySide found{.stage = id, .batch = axes.back(), .rows = {}, .columns = {}, .outer = {}};
  axes.pop_back();
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    const bool in_a = is_used_in(graph, *factors->a, *axis);
    const bool in_b = is_used_in(graph, *factors->b, *axis);
    SideBySide::Factor& factor = in_a ? found.rows : found.columns;
    if (in_a == in_b || factor.read != nullptr) {
      found.outer.insert(found.outer.begin(), *axis);
      continue;
    }
    // From the innermost outwards, so that the axis nearest to the batch is the tile's.
    factor = {.read = in_a ? factors->a : factors->b, .own = *axis};
  }
  if (found.rows.read == nullptr || found.columns.read == nullptr) return std::nullopt;
  for (SideBySide::Factor* factor : {&found.rows, &found.columns}) {
    if (!is_used_in(graph, *factor->read, found.batch)) return std::nullopt;
    factor->is_apart = !is_contiguous_in(graph, *factor->read, found.batch);
  }
  return found;
}

bool may_have_vectors(const StageGraph& graph, const SideBySide& product) {
  const bool is_same = product.rows.read->stage == product.columns.read->stage;
  return std::ranges::all_of(
      std::initializer_list<const SideBySide::Factor*>{&product.rows, &product.columns},
      [&](const SideBySide::Factor* factor) {
        return !factor->is_apart ||
               (!is_same && may_be_copied(graph, product.stage, *factor->read));
      });
}

bool is_product(const StageGraph& graph, StageId id) {
  if (find_contraction(graph, id)) return true;
  const std::optional<SideBySide> product = find_side_by_side(graph, id);
  return product && may_have_vectors(graph, *product);
}

}  // namespace kiln::autoschedule
