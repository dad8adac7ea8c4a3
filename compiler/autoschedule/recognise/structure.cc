// Questions about what a stage reads, which all choices are made of: what is contiguous, strided or
// indirect along an axis, and whether a sum is a contraction.
//
//   sum[k](A[i, k] * B[k, j])  ->  row i, column j, row factor A, column factor B
//
// An index is asked by substituting axis + 1 and simplifying the difference; what that does not
// prove counts as no.
#include "compiler/autoschedule/recognise/structure.h"

#include <algorithm>
#include <functional>

#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {
namespace {

using language::Operator;

/// The element that a factor is, looking through casts: products of narrow numbers in a wider type,
/// or of some of a float32's bits.
const ir::TensorRead* factor_of(const ir::Expr& expr) {
  ir::Expr inner = schedule::without_casts(expr);
  if (const ir::Call* call = ir::as<ir::Call>(inner); call && call->op == Operator::Tf32)
    inner = schedule::without_casts(call->args[0]);
  return ir::as<ir::TensorRead>(inner);
}

/// Whether an expression is computed of constants and of one element, which is noted.
bool is_of_one_element(const ir::Expr& expr, const ir::TensorRead*& element) {
  if (const auto* read = ir::as<ir::TensorRead>(expr)) {
    if (element == nullptr) element = read;
    return ir::equal_trees(element, expr);
  }
  if (ir::as<ir::Var>(expr) != nullptr || ir::as<ir::Reduce>(expr) != nullptr) return false;
  return std::ranges::all_of(ir::operands_of(expr), [&](const ir::Expr& part) {
    return is_of_one_element(part, element);
  });
}

const ir::TensorRead* computed_factor_of(const ir::Expr& expr) {
  const ir::TensorRead* element = nullptr;
  return is_of_one_element(expr, element) ? element : nullptr;
}

bool uses_axis(const StageGraph& graph, const ir::Expr& expr, AxisId axis) {
  return ir::uses_var(expr, graph.axes[axis].value);
}

/// Of what the bodies read, indices included; bounds of reductions are not looked at.
bool any_read(const Stage& stage, const std::function<bool(const ir::TensorRead&)>& holds) {
  bool found = false;
  for (const ir::Expr& body : stage.bodies)
    schedule::for_each_read(body, [&](const auto& read) { found = found || holds(read); });
  return found;
}

}  // namespace

std::vector<bool> touched_roots(const StageGraph& graph) {
  std::vector<bool> touched(graph.stages.size(), false);
  for (StageId id = 0; id < graph.stages.size(); ++id) {
    const bool is_loops = graph[id].attach.kind != schedule::Attach::Kind::Inline;
    if (graph[id].is_touched && is_loops) touched[root_of(graph, id)] = true;
  }
  return touched;
}

bool has_own_loops(const StageGraph& graph, StageId id) {
  const Stage& stage = graph[id];
  return stage.is_live && !stage.role.is_init &&
         stage.attach.kind == schedule::Attach::Kind::Root &&
         (stage.kind == Stage::Kind::Scan || schedule::runs_over_axes(stage));
}

bool computes_all(const Stage& stage) {
  return std::ranges::all_of(stage.conditions, &schedule::Condition::is_reduce);
}

bool is_open(const StageGraph& graph, StageId id) {
  const Stage& stage = graph[id];
  return stage.is_live && stage.kind == Stage::Kind::Compute && !stage.is_touched &&
         stage.attach.kind == schedule::Attach::Kind::Root && !stage.part_of &&
         stage.role.cell_of < 0 && !stage.role.is_init && stage.role.base_of < 0 &&
         computes_all(stage);
}

bool is_free(const StageGraph& graph, StageId id) {
  return is_open(graph, id) &&
         (graph[id].is_padding || id < graph.kernel->definition.stages.size());
}

std::optional<int64_t> constant_work(const StageGraph& graph, StageId id) {
  int64_t work = 1;
  const std::vector<AxisId> columns = columns_of(graph[id]);
  for (const std::vector<AxisId>* axes : {&columns, &graph[id].reduce}) {
    for (const AxisId axis : *axes) {
      const std::optional<int64_t> extent =
          ir::as_const_int(analysis::simplify(graph.axes[axis].extent));
      if (!extent) return std::nullopt;
      // Of what is larger nobody asks how much.
      constexpr int64_t kMost = int64_t{1} << 56;
      work = *extent > 0 && work > kMost / *extent ? kMost : work * std::max<int64_t>(*extent, 0);
    }
  }
  return work;
}

bool is_unit(const StageGraph& graph, AxisId axis) {
  return ir::as_const_int(analysis::simplify(graph.axes[axis].extent)) == 1;
}

bool has_no_line(const StageGraph& graph, StageId id, size_t dimensions) {
  const std::vector<AxisId>& data = graph[id].data;
  return data.size() >= dimensions &&
         std::all_of(data.begin() + static_cast<long>(dimensions), data.end(),
                     [&](AxisId axis) { return is_unit(graph, axis); });
}

std::vector<AxisId> columns_of(const Stage& stage) {
  std::vector<AxisId> columns = stage.data;
  if (stage.time_dimension >= 0) columns.erase(columns.begin() + stage.time_dimension);
  return columns;
}

bool has_time_last(const Stage& stage) {
  return !stage.data.empty() && stage.is_time(stage.data.size() - 1);
}

std::vector<StageId> reductions_inside(const StageGraph& graph, StageId id) {
  std::vector<StageId> found;
  for (StageId other = 0; other < graph.stages.size(); ++other) {
    const Stage& stage = graph[other];
    if (stage.part_of == id && stage.is_live && stage.is_reduction()) found.push_back(other);
  }
  return found;
}

bool is_used_inside(const StageGraph& graph, StageId id, AxisId axis) {
  const std::vector<StageId> inside = reductions_inside(graph, id);
  return any_read(graph[id], [&](const ir::TensorRead& read) {
    const bool is_inside = std::find(inside.begin(), inside.end(), read.stage) != inside.end();
    return is_inside && is_used_in(graph, read, axis);
  });
}

bool has_dependent_extents(const StageGraph& graph, StageId id) {
  const Stage& stage = graph[id];
  for (const ir::Expr& bound : schedule::reduction_bounds(graph, stage)) {
    if (schedule::has_read(bound)) return true;
  }
  for (const AxisId reduce : stage.reduce) {
    for (const std::vector<AxisId>* axes : {&stage.data, &stage.reduce}) {
      for (const AxisId axis : *axes) {
        if (uses_axis(graph, graph.axes[reduce].extent, axis) ||
            uses_axis(graph, graph.axes[reduce].minimum, axis)) {
          return true;
        }
      }
    }
  }
  return false;
}

bool has_indirect_reads(const Stage& stage) {
  return any_read(stage, [](const ir::TensorRead& read) {
    return std::ranges::any_of(read.indices, schedule::has_read);
  });
}

bool has_indirect_reads_along(const StageGraph& graph, const Stage& stage, AxisId axis) {
  return any_read(stage, [&](const ir::TensorRead& read) {
    return std::ranges::any_of(read.indices, [&](const ir::Expr& index) {
      return schedule::has_read(index) && uses_axis(graph, index, axis);
    });
  });
}

bool is_used_in(const StageGraph& graph, const ir::TensorRead& read, AxisId axis) {
  return std::any_of(read.indices.begin(), read.indices.end(),
                     [&](const ir::Expr& index) { return uses_axis(graph, index, axis); });
}

bool is_contiguous_in(const StageGraph& graph, const ir::TensorRead& read, AxisId axis) {
  if (read.indices.empty()) return false;
  for (size_t d = 0; d + 1 < read.indices.size(); ++d) {
    if (uses_axis(graph, read.indices[d], axis)) return false;
  }
  const ir::VarRef& value = graph.axes[axis].value;
  const ir::Expr& last = read.indices.back();
  if (!ir::uses_var(last, value)) return false;
  const ir::Expr next = ir::substitute(last, {{value, ir::Expr(value) + 1}});
  return ir::is_const(analysis::simplify(next - last), 1);
}

std::optional<int64_t> distance_along(const StageGraph& graph, const ir::TensorRead& read,
                                      AxisId axis) {
  const ir::VarRef& value = graph.axes[axis].value;
  const std::vector<ir::Expr>& shape = graph[read.stage].shapes[read.output];
  ir::Expr distance = ir::index(0);
  for (size_t d = 0; d < read.indices.size(); ++d) {
    const ir::Expr& index = read.indices[d];
    const ir::Expr next = ir::substitute(index, {{value, ir::Expr(value) + 1}});
    // Row-major: Horner's scheme over the differences of the indices.
    distance = analysis::simplify(distance * shape[d] + (next - index));
  }
  return ir::as_const_int(distance);
}

bool is_contiguous(const StageGraph& graph, const Stage& stage, AxisId axis) {
  return any_read(stage,
                  [&](const ir::TensorRead& read) { return is_contiguous_in(graph, read, axis); });
}

bool is_strided(const StageGraph& graph, const Stage& stage, AxisId axis) {
  return any_read(stage, [&](const ir::TensorRead& read) {
    return is_used_in(graph, read, axis) && !is_contiguous_in(graph, read, axis);
  });
}

bool is_near(const StageGraph& graph, const Stage& stage, AxisId axis) {
  // Elements. A vector of them then touches at most four times as many lines as one without gaps.
  constexpr int64_t kMostApart = 4;
  const auto moves = [&](const ir::TensorRead& read) { return is_used_in(graph, read, axis); };
  const auto moves_far = [&](const ir::TensorRead& read) {
    const int64_t apart = distance_along(graph, read, axis).value_or(0);
    return moves(read) && (apart < 1 || apart > kMostApart);
  };
  return any_read(stage, moves) && !any_read(stage, moves_far);
}

bool is_plain_reduction(const StageGraph& graph, StageId id) {
  return graph[id].bodies.size() == 1 && is_plain_reduction_of_values(graph, id);
}

bool is_plain_reduction_of_values(const StageGraph& graph, StageId id) {
  const Stage& stage = graph[id];
  return stage.kind == Stage::Kind::Compute && stage.is_reduction() && stage.time_dimension < 0 &&
         stage.role.cell_of < 0 && stage.conditions.empty() && !has_dependent_extents(graph, id) &&
         !has_indirect_reads(stage) && reductions_inside(graph, id).empty();
}

bool has_vectors_along_data(const StageGraph& graph, StageId id) {
  const Stage& stage = graph[id];
  const std::vector<AxisId> columns = columns_of(stage);
  if (columns.empty() || stage.is_time(stage.data.size() - 1)) return false;
  const AxisId last = columns.back();
  return is_contiguous(graph, stage, last) &&
         (!is_contiguous(graph, stage, stage.reduce.back()) || !is_strided(graph, stage, last));
}

const ir::Binary* summed_product(const Stage& stage) {
  if (stage.bodies.size() != 1) return nullptr;
  const ir::Reduce* reduce = ir::as<ir::Reduce>(stage.bodies[0]);
  if (reduce == nullptr || reduce->how.combiner != language::Combiner::Sum) return nullptr;
  const ir::Expr source = schedule::without_casts(reduce->sources[0]);
  const ir::Binary* product = ir::as<ir::Binary>(source);
  return product != nullptr && product->op == Operator::Mul ? product : nullptr;
}

std::optional<Factors> find_factors(const StageGraph& graph, StageId id, FactorForm form) {
  const Stage& stage = graph[id];
  const ir::Binary* product = summed_product(stage);
  if (product == nullptr || has_dependent_extents(graph, id)) return std::nullopt;
  if (ir::as<ir::Reduce>(stage.bodies[0])->condition) return std::nullopt;
  const auto element_of = form == FactorForm::Element ? factor_of : computed_factor_of;
  const Factors found{element_of(product->a), element_of(product->b)};
  if (found.a == nullptr || found.b == nullptr || has_indirect_reads(stage)) return std::nullopt;
  return found;
}

std::optional<Contraction> find_contraction(const StageGraph& graph, StageId id, FactorForm form) {
  const std::vector<AxisId> columns = columns_of(graph[id]);
  const std::optional<Factors> factors = find_factors(graph, id, form);
  if (!factors || columns.size() < 2) return std::nullopt;
  const auto [a, b] = *factors;

  Contraction found{.column = columns.back()};
  const bool in_a = is_used_in(graph, *a, found.column);
  // In both it would be a batch along the vectors, which batch_sketches are for; in neither a
  // broadcast.
  if (in_a == is_used_in(graph, *b, found.column)) return std::nullopt;
  found.row_factor = in_a ? b : a;
  found.column_factor = in_a ? a : b;
  // The innermost axis that qualifies: rows of a tile are then close to each other in memory. One
  // of extent 1, as a batch of one sequence, only where no other does.
  std::optional<AxisId> row;
  for (auto axis = columns.rbegin() + 1; axis != columns.rend(); ++axis) {
    if (is_used_in(graph, *found.column_factor, *axis) ||
        !is_used_in(graph, *found.row_factor, *axis)) {
      continue;
    }
    const bool is_one = ir::as_const_int(analysis::simplify(graph.axes[*axis].extent)) == 1;
    if (!row || !is_one) row = *axis;
    if (!is_one) break;
  }
  if (!row) return std::nullopt;
  found.row = *row;
  return found;
}

bool has_independent_columns(const StageGraph& graph, StageId scan_id) {
  const Stage& scan = graph[scan_id];
  const std::vector<ir::Expr>& shape = scan.shapes[0];
  const auto has_columns_of_scan = [&](const std::vector<ir::Expr>& other) {
    if (other.size() != shape.size()) return false;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (!scan.is_time(d) && !ir::equal_trees(other[d], shape[d])) return false;
    }
    return true;
  };
  for (const std::vector<ir::Expr>& other : scan.shapes) {
    if (!has_columns_of_scan(other)) return false;
  }
  for (const Stage& stage : graph.stages) {
    if (!stage.is_live || stage.role.cell_of != static_cast<int>(scan_id)) continue;
    bool own = !stage.is_reduction() && has_columns_of_scan(stage.shapes[0]);
    for (const ir::Expr& body : stage.bodies) {
      schedule::for_each_read(body, [&](const ir::TensorRead& read) {
        const bool is_cell = graph[read.stage].role.cell_of == static_cast<int>(scan_id);
        const bool is_state =
            std::find(scan.as_scan.state.begin(), scan.as_scan.state.end(),
                      language::TensorId{read.stage, read.output}) != scan.as_scan.state.end();
        if (!own || (!is_cell && !is_state)) return;
        for (size_t d = 0; d < read.indices.size(); ++d) {
          // A state is read at an earlier time, which its own column has computed.
          if (!is_cell && scan.is_time(d)) continue;
          own = own && read.indices[d] == ir::Expr(graph.axes[stage.data[d]].value);
        }
      });
    }
    if (!own) return false;
  }
  return true;
}

}  // namespace kiln::autoschedule
