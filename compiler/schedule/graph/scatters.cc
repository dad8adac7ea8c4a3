#include "compiler/schedule/graph/scatters.h"

#include <algorithm>

#include "compiler/analysis/affine.h"
#include "compiler/ir/build.h"
#include "compiler/schedule/graph/reads.h"
#include "compiler/schedule/graph/scan_cells.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {
namespace {

bool is_only_base(const StageGraph& graph, TensorId tensor, const std::map<TensorId, Uses>& uses) {
  const Stage& stage = graph[tensor.stage];
  const Uses& use = uses.at(tensor);
  return stage.kind == Stage::Kind::Compute && stage.types.size() == 1 && stage.base_of < 0 &&
         !graph.is_parameter(tensor) && use.reads == 1 && use.scan_places == 0;
}

/// A scatter that also reads its base elsewhere than at the elements it updates needs it whole.
bool reads_base(const Stage& scatter) {
  bool found = false;
  std::vector<ir::Expr> exprs = scatter.indices;
  exprs.insert(exprs.end(), scatter.bodies.begin(), scatter.bodies.end());
  for (const ir::Expr& expr : exprs) {
    for_each_read(expr, [&](const ir::TensorRead& read) {
      found = found || TensorId{read.stage, read.output} == scatter.base;
    });
  }
  return found;
}

/// The loops of one scatter whose iterations must keep their order, and that order.
class Order {
 public:
  Order(const StageGraph& graph, StageId id) : graph_(graph), stage_(graph[id]), id_(id) {}

  bool is_ordered(AxisId axis) const {
    const Relation* made = find(axis, false);
    if (made == nullptr) return !tells_elements_apart(graph_, id_, axis);
    if (const Split* split = std::get_if<Split>(made)) return is_ordered(split->parent);
    const std::vector<AxisId>& parts = std::get<Fuse>(*made).parts;
    return std::any_of(parts.begin(), parts.end(), [&](AxisId part) { return is_ordered(part); });
  }

  std::vector<AxisId> actual() const {
    std::vector<AxisId> leaves;
    std::copy_if(stage_.leaves.begin(), stage_.leaves.end(), std::back_inserter(leaves),
                 [&](AxisId leaf) { return is_ordered(leaf); });
    return leaves;
  }

  std::vector<AxisId> wanted() const {
    std::vector<AxisId> leaves;
    for (const AxisId root : stage_.data) {
      if (is_ordered(root)) append_leaves(root, leaves);
    }
    return leaves;
  }

 private:
  /// The relation that makes the axis, or the one that consumes it.
  const Relation* find(AxisId axis, bool consuming) const {
    for (const Relation& relation : stage_.relations) {
      const Split* split = std::get_if<Split>(&relation);
      const Fuse* fuse = std::get_if<Fuse>(&relation);
      const bool consumes = split != nullptr ? split->parent == axis
                                             : std::find(fuse->parts.begin(), fuse->parts.end(),
                                                         axis) != fuse->parts.end();
      const bool makes =
          split != nullptr ? split->outer == axis || split->inner == axis : fuse->fused == axis;
      if (consuming ? consumes : makes) return &relation;
    }
    return nullptr;
  }

  void append_leaves(AxisId axis, std::vector<AxisId>& leaves) const {
    const Relation* used = find(axis, true);
    if (used == nullptr) {
      if (std::find(leaves.begin(), leaves.end(), axis) == leaves.end()) leaves.push_back(axis);
    } else if (const Split* split = std::get_if<Split>(used)) {
      append_leaves(split->outer, leaves);
      append_leaves(split->inner, leaves);
    } else {
      append_leaves(std::get<Fuse>(*used).fused, leaves);
    }
  }

  const StageGraph& graph_;
  const Stage& stage_;
  const StageId id_;
};

std::string phrase_of(const Axis& axis) {
  if (axis.thread != ir::ThreadAxis::None) return "bind " + axis.name;
  if (axis.loop_kind == ir::LoopKind::Vectorized) return "vectorize " + axis.name;
  return "run " + axis.name + " in parallel";
}

void refuse_at_once(const StageGraph& graph, StageId id, const Order& order,
                    const language::Schedule& schedule) {
  for (const AxisId leaf : graph[id].leaves) {
    const Axis& axis = graph.axes[leaf];
    const bool at_once = axis.loop_kind == ir::LoopKind::Vectorized ||
                         axis.loop_kind == ir::LoopKind::Parallel ||
                         axis.thread != ir::ThreadAxis::None;
    if (!at_once || !order.is_ordered(leaf)) continue;
    const auto number = static_cast<size_t>(std::max(axis.annotated_by, 0));
    const language::Step& step = schedule.steps[number];
    at_step(graph, step, axis.annotated_by, describe(graph, step, {leaf}), [&] {
      fail(ErrorKind::Unsupported, "SCATTER_ORDER",
           "cannot {}: its iterations may update one element of {}; an axis may run so when an "
           "index of {} is that axis",
           phrase_of(axis), graph[id].name, graph[id].name);
    });
  }
}

}  // namespace

void place_scatter_bases(StageGraph& graph) {
  const std::map<TensorId, Uses> uses = uses_of_tensors(graph);
  const size_t count = graph.stages.size();
  for (StageId id = 0; id < count; ++id) {
    if (graph[id].kind != Stage::Kind::Scatter) continue;
    const TensorId base = graph[id].base;
    if (!is_only_base(graph, base, uses) || reads_base(graph[id])) {
      const StageId copy = add_copy(graph, id, base, "base");
      graph.stages[id].base = {copy, 0};
    }
    graph.stages[graph[id].base.stage].base_of = static_cast<int>(id);
  }
}

bool tells_elements_apart(const StageGraph& graph, StageId id, AxisId axis) {
  const Stage& stage = graph[id];
  ir::Substitution from_zero;
  analysis::LoopRange asked;
  std::vector<analysis::LoopRange> others;
  for (const AxisId each : stage.data) {
    const Axis& given = graph.axes[each];
    const analysis::LoopRange range = {given.value, given.extent};
    from_zero.emplace(given.value, given.minimum + given.value);
    if (each == axis) {
      asked = range;
    } else {
      others.push_back(range);
    }
  }
  std::vector<ir::Expr> indices;
  for (const ir::Expr& index : stage.indices) {
    if (!has_read(index)) indices.push_back(ir::substitute(index, from_zero));  // data: any number
  }
  return asked.var && !indices.empty() && analysis::are_distinct(indices, {asked}, others);
}

void check_scatters(const StageGraph& graph, const language::Schedule& schedule) {
  for (StageId id = 0; id < graph.stages.size(); ++id) {
    const Stage& stage = graph[id];
    if (stage.kind != Stage::Kind::Scatter || !stage.is_live) continue;
    at_stage(graph, id, [&] {
      const Order order(graph, id);
      refuse_at_once(graph, id, order, schedule);
      const bool any_order = stage.combiner && is_int(stage.types[0]);
      const std::vector<AxisId> wanted = order.wanted();
      if (any_order || order.actual() == wanted) return;
      fail(ErrorKind::Unsupported, "SCATTER_ORDER",
           "the loops of {} are {}, but those that may update one element must keep the order {}",
           stage.name, names_of_axes(graph, stage.leaves), names_of_axes(graph, wanted));
    });
  }
}

}  // namespace kiln::schedule
