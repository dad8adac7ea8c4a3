// Finds axes that go on into each other, so that loops over them are one loop:
//
//   Y[n, c] = sum[h, w](X[n, c, h, w])    h and w: 3136 elements, not 56 times 56
#include "compiler/autoschedule/recognise/joined_axes.h"

#include <algorithm>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/ir/build.h"
#include "compiler/ir/mutator.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {
namespace {

/// Whether a variable stands somewhere else than in the index of what is read.
class FindsOutsideReads : public ir::Visitor {
 public:
  FindsOutsideReads(const ir::Expr& expr, const ir::VarRef& var) : var_(var) { (*this)(expr); }
  bool found = false;

 private:
  using Visitor::visit;
  void visit(const ir::TensorRead&) override {}
  void visit(const ir::Var& var) override { found = found || &var == var_.get(); }

  const ir::VarRef& var_;
};

bool is_one_of(const Apart& tensors, const ir::TensorRead& read) {
  return std::ranges::find(tensors, schedule::TensorId{read.stage, read.output}) != tensors.end();
}

/// The dimension of a read whose index is the axis itself; that of no index: past the last.
size_t dimension_of(const StageGraph& graph, const ir::TensorRead& read, AxisId axis) {
  const auto is_axis = [&](const ir::Expr& index) {
    return ir::as<ir::Var>(index) == graph.axes[axis].value.get();
  };
  return static_cast<size_t>(std::ranges::find_if(read.indices, is_axis) - read.indices.begin());
}

/// Whether what is computed for each element that a stage reads goes on, too: it may be written
/// out.
bool goes_on_in_sources(const StageGraph& graph, StageId id, AxisId axis, AxisId next,
                        const Apart& apart) {
  bool goes_on = true;
  for (const ir::Expr& body : schedule::expanded_bodies(graph, id)) {
    schedule::for_each_read(body, [&](const ir::TensorRead& read) {
      const Stage& source = graph[read.stage];
      const bool is_read_so = is_used_in(graph, read, axis) || is_used_in(graph, read, next);
      if (source.kind != Stage::Kind::Compute || source.is_reduction() || !is_read_so || !goes_on ||
          is_one_of(apart, read))
        return;
      const size_t outer = dimension_of(graph, read, axis);
      const size_t inner = dimension_of(graph, read, next);
      goes_on = std::max(outer, inner) < source.data.size() &&
                goes_on_into(graph, read.stage, source.data[outer], source.data[inner]) &&
                goes_on_in_sources(graph, read.stage, source.data[outer], source.data[inner], {});
    });
  }
  return goes_on;
}

/// Whether the one follows the other, where no step has changed the loops.
bool follows(const Stage& stage, AxisId axis, AxisId next) {
  const auto is_next = [&](const std::vector<AxisId>& axes) {
    const auto place = std::ranges::find(axes, axis);
    return place != axes.end() && place + 1 != axes.end() && *(place + 1) == next;
  };
  return is_next(stage.data) || is_next(stage.reduce);
}

bool begins_at_zero(const StageGraph& graph, AxisId axis) {
  return ir::is_const(graph.axes[axis].minimum, 0);
}

}  // namespace

bool goes_on_into(const StageGraph& graph, StageId id, AxisId axis, AxisId next,
                  const Apart& apart) {
  const std::optional<int64_t> length = constant_extent(graph, next);
  if (!length || !constant_extent(graph, axis) || !follows(graph[id], axis, next) ||
      !begins_at_zero(graph, axis) || !begins_at_zero(graph, next))
    return false;
  bool is_one = true;
  for (const ir::Expr& body : schedule::expanded_bodies(graph, id)) {
    for (const AxisId each : {axis, next})
      is_one = is_one && !FindsOutsideReads(body, graph.axes[each].value).found;
    schedule::for_each_read(body, [&](const ir::TensorRead& read) {
      if (is_one_of(apart, read)) return;
      const std::optional<int64_t> outer = distance_along(graph, read, axis);
      const std::optional<int64_t> inner = distance_along(graph, read, next);
      is_one = is_one && outer && inner && *outer == *inner * *length;
    });
  }
  return is_one;
}

std::vector<AxisId> joined_last(const StageGraph& graph, StageId id,
                                const std::vector<AxisId>& axes, const Apart& apart) {
  std::vector<AxisId> line = {axes.back()};
  for (auto axis = axes.rbegin() + 1; axis != axes.rend(); ++axis) {
    if (!goes_on_into(graph, id, *axis, line.front(), apart) ||
        !goes_on_in_sources(graph, id, *axis, line.front(), apart))
      break;
    line.insert(line.begin(), *axis);
  }
  return line;
}

}  // namespace kiln::autoschedule
