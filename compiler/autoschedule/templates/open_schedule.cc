// A rewrite that only divides the work, as of products that are computed one after the other, names
// stages that are still to be scheduled: its steps are applied, and they count as untouched.
#include "compiler/autoschedule/templates/open_schedule.h"

#include <algorithm>

#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/ir/mutator.h"
#include "compiler/schedule/steps/apply_steps.h"

namespace kiln::autoschedule {
namespace {

using schedule::AxisId;
using schedule::Fuse;
using schedule::Stage;
using schedule::StageGraph;

/// X[n, h, w], summed up over h and w  ->  X[n, 0, hw]
///
/// What is read is where it was, as far as the distance of elements says, and that axes are fused
/// at all says that distances are all there is to it.
void merge(StageGraph& graph, Stage& stage, const Fuse& fuse) {
  schedule::Axis& all = graph.axes[fuse.fused];
  all.value = ir::Var::make(all.name);
  all.minimum = ir::index(0);
  all.extent = ir::index(1);
  ir::Substitution values;
  for (const AxisId part : fuse.parts) {
    all.extent = analysis::simplify(all.extent * graph.axes[part].extent);
    values[graph.axes[part].value] = ir::index(0);
  }
  values[graph.axes[fuse.parts.back()].value] = all.value;
  const auto first = std::ranges::find(stage.reduce, fuse.parts.front());
  *first = fuse.fused;
  stage.reduce.erase(first + 1, first + static_cast<std::ptrdiff_t>(fuse.parts.size()));
  std::vector<ir::VarRef> axes;
  for (const AxisId axis : stage.reduce)
    axes.push_back(graph.axes[axis].value);
  for (ir::Expr& body : stage.bodies) {
    const ir::Expr merged = ir::substitute(body, values);
    const auto* reduce = ir::as<ir::Reduce>(merged);
    body = ir::Reduce::make(reduce->how, reduce->sources, reduce->condition, reduce->init, axes);
  }
}

void merge_fused(StageGraph& graph, Stage& stage) {
  for (const schedule::Relation& relation : stage.loops.relations) {
    const auto* fuse = std::get_if<Fuse>(&relation);
    if (fuse == nullptr) continue;
    const auto is_reduced = [&](AxisId part) {
      return std::ranges::find(stage.reduce, part) != stage.reduce.end();
    };
    if (std::ranges::all_of(fuse->parts, is_reduced)) merge(graph, stage, *fuse);
  }
}

}  // namespace

schedule::StageGraph graph_of(const language::Kernel& kernel, const OpenSchedule& given) {
  schedule::StageGraph graph = schedule::build_stage_graph(kernel);
  schedule::apply_steps(graph, given.schedule);
  for (const schedule::StageId id : given.open) {
    Stage& stage = graph.stages[id];
    // One that a later step has put into the loops of another one is scheduled, as these are.
    if (stage.attach.kind != schedule::Attach::Kind::At) stage.is_touched = false;
    merge_fused(graph, stage);
  }
  return graph;
}

}  // namespace kiln::autoschedule
