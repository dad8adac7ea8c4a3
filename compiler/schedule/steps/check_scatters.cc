// The loops of a scatter may be reordered or run at once where no two iterations can meet in one
// element; integers may be combined in any order, one after the other, and by threads of a GPU at
// once, where an update is in one piece.
//   S[i, X[i, j]] += 1   ->   i may run in parallel; j keeps its order, unless S is of integers
#include <algorithm>

#include "compiler/ir/launch.h"
#include "compiler/schedule/graph/scatters.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {
namespace {

/// The loops of one scatter whose iterations must keep their order, and that order.
class Order {
 public:
  Order(const StageGraph& graph, StageId id) : graph_(graph), stage_(graph[id]), id_(id) {}

  bool is_ordered(AxisId axis) const { return may_meet(graph_, id_, axis); }

  std::vector<AxisId> actual() const {
    std::vector<AxisId> leaves;
    std::copy_if(stage_.loops.leaves.begin(), stage_.loops.leaves.end(), std::back_inserter(leaves),
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
  /// The relation that consumes the axis.
  const Relation* find(AxisId axis) const {
    for (const Relation& relation : stage_.loops.relations) {
      const Split* split = std::get_if<Split>(&relation);
      const Fuse* fuse = std::get_if<Fuse>(&relation);
      const bool consumes = split != nullptr ? split->parent == axis
                                             : std::find(fuse->parts.begin(), fuse->parts.end(),
                                                         axis) != fuse->parts.end();
      if (consumes) return &relation;
    }
    return nullptr;
  }

  void append_leaves(AxisId axis, std::vector<AxisId>& leaves) const {
    const Relation* used = find(axis);
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

/// Threads of a GPU may meet where `may_bind` and each update is in one piece.
void refuse_at_once(const StageGraph& graph, StageId id, bool may_bind,
                    const language::Schedule& schedule) {
  const Order order(graph, id);
  for (const AxisId leaf : graph[id].loops.leaves) {
    const Axis& axis = graph.axes[leaf];
    const bool at_once = axis.loop_kind == ir::LoopKind::Vectorized ||
                         axis.loop_kind == ir::LoopKind::Parallel ||
                         axis.thread != ir::ThreadAxis::None;
    if (!at_once || !order.is_ordered(leaf)) continue;
    const bool is_bound = ir::is_thread_axis(axis.thread) || ir::is_block_axis(axis.thread);
    if (is_bound && may_bind && is_in_one_piece(graph[id])) continue;
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

void check_scatters(const StageGraph& graph, const language::Schedule& schedule) {
  for (StageId id = 0; id < graph.stages.size(); ++id) {
    const Stage& stage = graph[id];
    if (stage.kind != Stage::Kind::Scatter || !stage.is_live) continue;
    at_stage(graph, id, [&] {
      const Order order(graph, id);
      refuse_at_once(graph, id, true, schedule);
      const bool any_order =
          (stage.as_scatter.combiner && is_int(stage.types[0])) || has_meeting_threads(graph, id);
      const std::vector<AxisId> wanted = order.wanted();
      if (any_order || order.actual() == wanted) return;
      fail(ErrorKind::Unsupported, "SCATTER_ORDER",
           "the loops of {} are {}, but those that may update one element must keep the order {}",
           stage.name, names_of_axes(graph, stage.loops.leaves), names_of_axes(graph, wanted));
    });
  }
}

void refuse_meeting_updates(const StageGraph& graph, StageId id,
                            const language::Schedule& schedule) {
  refuse_at_once(graph, id, false, schedule);
}

}  // namespace kiln::schedule
