// Loops as the state has made them: its change of the loop tree, in the nest of the stage whose
// loops they are. Of fuse, what only a nest shows: that the loops are neighbours, of one kind, and
// that the extent of none depends on another.
//   loops i, j, k;  fuse(i, k)  ->  refused: i and k are not neighbours in the loop order i, j, k
#include <algorithm>

#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {
namespace {

/// The root axes that an axis is made of.
void collect_roots(const Stage& stage, AxisId axis, std::vector<AxisId>& roots) {
  for (const Relation& relation : stage.loops.relations) {
    if (const Split* split = std::get_if<Split>(&relation)) {
      if (split->outer == axis || split->inner == axis) {
        return collect_roots(stage, split->parent, roots);
      }
    } else if (std::get<Fuse>(relation).fused == axis) {
      for (const AxisId part : std::get<Fuse>(relation).parts)
        collect_roots(stage, part, roots);
      return;
    }
  }
  roots.push_back(axis);
}

void refuse_dependent_extents(const StepContext& context) {
  std::vector<AxisId> roots;
  for (const AxisId axis : context.axes)
    collect_roots(context.record(), axis, roots);
  for (const AxisId inner : roots) {
    for (const AxisId outer : roots) {
      const Axis& a = context.graph.axes[outer];
      const Axis& b = context.graph.axes[inner];
      if (!ir::uses_var(b.extent, a.value) && !ir::uses_var(b.minimum, a.value)) continue;
      fail(ErrorKind::Unsupported, "DEPENDENT_EXTENT",
           "cannot fuse {}: the extent of {} depends on {}",
           names_of_axes(context.graph, context.axes), b.name, a.name);
    }
  }
}

void check_fuse(const StepContext& context) {
  const std::vector<AxisId>& axes = context.axes;
  const language::Loops& loops = context.record().loops;
  const std::string list = names_of_axes(context.graph, axes);
  for (size_t i = 1; i < axes.size(); ++i) {
    const std::string_view outer = context.axis(i - 1).name;
    const std::string_view inner = context.axis(i).name;
    if (loops.place_of(axes[i]) != loops.place_of(axes[i - 1]) + 1) {
      fail(ErrorKind::InvalidArgument, "NOT_NEIGHBOURS",
           "fuse({}): {} and {} are not neighbours in the loop order {}", list, outer, inner,
           names_of_axes(context.graph, loops.leaves));
    }
    if (context.axis(i).kind != context.axis(i - 1).kind) {
      fail(ErrorKind::InvalidArgument, "FUSE_KINDS",
           "fuse({}): one of {} and {} is a reduction axis and the other is not", list, outer,
           inner);
    }
  }
  refuse_dependent_extents(context);
}

/// The loops of the nest as the last step has left those of the state.
void change_loops(const StepContext& context) {
  StageGraph& graph = context.graph;
  const std::vector<language::AxisRow>& rows = graph.state.axes();
  for (size_t id = graph.axis_of_id.size(); id < rows.size(); ++id) {
    graph.axis_of_id.push_back(static_cast<AxisId>(graph.axes.size()));
    graph.axes.push_back(
        Axis{.name = rows[id].name, .kind = rows[id].kind, .stage = context.stage});
  }
  context.record().loops.apply(
      graph.state.last_change().renamed([&](language::AxisId id) { return graph.axis_of_id[id]; }));
}

}  // namespace

template <>
void apply<StepKind::Split>(const StepContext& context) {
  change_loops(context);
}

template <>
void apply<StepKind::Tile>(const StepContext& context) {
  change_loops(context);
}

template <>
void apply<StepKind::Reorder>(const StepContext& context) {
  change_loops(context);
}

template <>
void apply<StepKind::Fuse>(const StepContext& context) {
  check_fuse(context);
  change_loops(context);
}

}  // namespace kiln::schedule
