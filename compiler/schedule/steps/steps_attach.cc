// Where stages are computed, and when all steps are taken, whether each stage inside a loop is read
// inside of it only, and is not what the loop's own bounds or start values need.
//   compute_at(B, C.i)  with B read by C and D  ->  refused: it is also read by D
#include <algorithm>

#include "compiler/schedule/graph/reads.h"
#include "compiler/schedule/steps/inner_outputs.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {
namespace {

/// What is computed straight into the output of a scan or of a scatter has its place.
void require_movable(const StepContext& context, std::string_view what) {
  const Stage& stage = context.record();
  if (stage.role.base_of >= 0) {
    fail(ErrorKind::InvalidArgument, "FIXED_STAGE",
         "cannot {} {}: it is the base of {}, which updates it in place", what, stage.name,
         context.graph[static_cast<StageId>(stage.role.base_of)].name);
  }
  if (stage.role.is_init) {
    fail(ErrorKind::InvalidArgument, "FIXED_STAGE", "cannot {} {}: it is the init of {}", what,
         stage.name, context.graph[stage.role.init_of].name);
  }
}

size_t position_of(const Stage& stage, AxisId leaf) { return stage.loops.place_of(leaf); }

/// Whether all of `reader` runs inside the loop `axis` of `consumer`.
bool runs_inside(const StageGraph& graph, StageId reader, StageId consumer, AxisId axis) {
  if (reader == consumer) return true;
  const Attach& attach = graph[reader].attach;
  if (attach.kind != Attach::Kind::At || graph[reader].role.is_init) return false;
  if (attach.stage == consumer) {
    return position_of(graph[consumer], attach.axis) >= position_of(graph[consumer], axis);
  }
  return runs_inside(graph, attach.stage, consumer, axis);
}

/// Attaches a reduction that the compiler took out of a larger expression inside the loops of its
/// reader, as far out as the axes it uses allow, when that computes nothing twice.
void attach_hidden_reduction(StageGraph& graph, StageId id) {
  const std::vector<StageId> readers = readers_of(graph, id);
  if (readers.size() != 1) return;
  const StageId whole = *graph[id].part_of;
  if (!is_part_of(graph, readers[0], whole)) return;
  const Stage& reader = graph[readers[0]];
  std::vector<AxisId> used;
  bool is_plain = true;
  for (const ir::Expr& body : expanded_bodies(graph, readers[0])) {
    for_each_read(body, [&](const ir::TensorRead& read) {
      if (read.stage != id) return;
      for (const ir::Expr& index : read.indices) {
        const auto axis =
            std::find_if(reader.loops.leaves.begin(), reader.loops.leaves.end(), [&](AxisId leaf) {
              return graph.axes[leaf].value && index == ir::Expr(graph.axes[leaf].value);
            });
        is_plain = is_plain && axis != reader.loops.leaves.end();
        if (axis != reader.loops.leaves.end()) used.push_back(*axis);
      }
    });
  }
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  if (!is_plain || used.empty()) return;
  for (size_t i = 0; i < used.size(); ++i) {
    const bool in_front = std::find(used.begin(), used.end(), reader.loops.leaves[i]) != used.end();
    if (!in_front || graph.axes[reader.loops.leaves[i]].loop_kind == ir::LoopKind::Vectorized)
      return;
  }
  graph.stages[id].attach = {Attach::Kind::At, readers[0], reader.loops.leaves[used.size() - 1],
                             -1};
}

void check_axis(const StageGraph& graph, const Stage& stage) {
  const Stage& consumer = graph[stage.attach.stage];
  const std::string& axis = graph.axes[stage.attach.axis].name;
  const size_t at = position_of(consumer, stage.attach.axis);
  KILN_CHECK(at < consumer.loops.leaves.size());  // the state lets no step take it away
  for (size_t i = 0; i <= at; ++i) {
    const Axis& loop = graph.axes[consumer.loops.leaves[i]];
    if (loop.loop_kind != ir::LoopKind::Vectorized) continue;
    fail(ErrorKind::Unsupported, "ATTACH_VECTOR",
         "cannot compute {} at {} of {}: {} is vectorized; choose a loop outside of it", stage.name,
         axis, consumer.name, loop.name);
  }
}

void check_cell(const StageGraph& graph, const Stage& stage) {
  if (stage.role.cell_of < 0) return;
  const auto scan_id = static_cast<StageId>(stage.role.cell_of);
  const Stage& consumer = graph[stage.attach.stage];
  const Stage& scan = graph[scan_id];
  const bool is_scan = stage.attach.stage == scan_id;
  if (!is_scan && consumer.role.cell_of != stage.role.cell_of) {
    fail(ErrorKind::InvalidArgument, "ATTACH_CELL",
         "cannot compute {} at {} of {}: it depends on the state of {} and must stay inside its "
         "time "
         "loop",
         stage.name, graph.axes[stage.attach.axis].name, consumer.name, scan.name);
  }
  if (is_scan && stage.attach.axis != scan.loops.leaves.back()) {
    fail(ErrorKind::InvalidArgument, "ATTACH_CELL",
         "cannot compute {} at {} of {}: it depends on the state and must stand in the innermost "
         "time loop, {}",
         stage.name, graph.axes[stage.attach.axis].name, scan.name,
         graph.axes[scan.loops.leaves.back()].name);
  }
}

/// What says how far a loop runs is computed outside of it.
void check_bounds_of_reader(const StageGraph& graph, StageId id) {
  const Attach& attach = graph[id].attach;
  const Stage& consumer = graph[attach.stage];
  const size_t at = position_of(consumer, attach.axis);
  const auto reduces = [&](AxisId leaf) { return graph.axes[leaf].kind == AxisKind::Reduce; };
  if (std::none_of(consumer.loops.leaves.begin(),
                   consumer.loops.leaves.begin() + static_cast<long>(at) + 1, reduces)) {
    return;
  }
  for (const ir::Expr& bound : expanded_bounds(graph, attach.stage)) {
    for_each_read(bound, [&](const ir::TensorRead& read) {
      if (read.stage != id) return;
      fail(ErrorKind::InvalidArgument, "ATTACH_BOUND",
           "cannot compute {} at {} of {}: the bounds of a reduction of {} read it; choose a loop "
           "outside of the reduction",
           graph[id].name, graph.axes[attach.axis].name, consumer.name, consumer.name);
    });
  }
}

/// A reduction starts before any of its loops runs.
void check_init_of_reader(const StageGraph& graph, StageId id) {
  const Attach& attach = graph[id].attach;
  const Stage& consumer = graph[attach.stage];
  const auto reduces = [&](AxisId leaf) { return graph.axes[leaf].kind == AxisKind::Reduce; };
  const auto first =
      std::find_if(consumer.loops.leaves.begin(), consumer.loops.leaves.end(), reduces);
  if (position_of(consumer, attach.axis) <
      static_cast<size_t>(first - consumer.loops.leaves.begin())) {
    return;
  }
  for (const ir::Expr& init : expanded_inits(graph, attach.stage)) {
    for_each_read(init, [&](const ir::TensorRead& read) {
      if (read.stage != id) return;
      fail(ErrorKind::InvalidArgument, "ATTACH_INIT",
           "cannot compute {} at {} of {}: the reduction of {} starts from it; choose a loop "
           "outside of {}",
           graph[id].name, graph.axes[attach.axis].name, consumer.name, consumer.name,
           graph.axes[*first].name);
    });
  }
}

void check_attachment(const StageGraph& graph, StageId id) {
  const Stage& stage = graph[id];
  const Stage& consumer = graph[stage.attach.stage];
  if (consumer.attach.kind == Attach::Kind::Inline || consumer.loops.leaves.empty()) {
    fail(ErrorKind::InvalidArgument, "ATTACH_AXIS",
         "cannot compute {} at {} of {}: {} has no loops", stage.name,
         graph.axes[stage.attach.axis].name, consumer.name, consumer.name);
  }
  check_axis(graph, stage);
  check_cell(graph, stage);
  check_bounds_of_reader(graph, id);
  check_init_of_reader(graph, id);
  for (const StageId reader : readers_of(graph, id)) {
    if (runs_inside(graph, reader, stage.attach.stage, stage.attach.axis)) continue;
    fail(ErrorKind::InvalidArgument, "ATTACH_READER",
         "cannot compute {} at {} of {}: it is also read by {}, which is outside of that loop; "
         "compute {} inside it too, or leave {} at the root",
         stage.name, graph.axes[stage.attach.axis].name, consumer.name, graph[reader].name,
         graph[reader].name, stage.name);
  }
}

}  // namespace

template <>
void apply<StepKind::ComputeAt>(const StepContext& context) {
  require_movable(context, "attach");
  if (context.graph.has_parameter(context.stage) &&
      readers_of(context.graph, context.stage).empty()) {
    fail(ErrorKind::InvalidArgument, "COMPUTE_AT",
         "{} is an output and cannot be computed inside another stage", context.record().name);
  }
  const StageId consumer = context.step.at_stage;
  const AxisId axis = context.step.at_axis;
  const StageGraph& graph = context.graph;
  KILN_CHECK(consumer != context.stage);
  // The loops of a reduction that stands inside the consumer are a nest of its own.
  const StageId owner = graph.axes[axis].stage;
  KILN_CHECK(is_part_of(graph, owner, consumer));  // decode_schedule() refuses others
  context.record().attach = {Attach::Kind::At, owner, axis, context.position};
}

template <>
void apply<StepKind::ComputeInline>(const StepContext& context) {
  require_movable(context, "inline");
  if (context.graph.has_parameter(context.stage) &&
      readers_of(context.graph, context.stage).empty()) {
    fail(ErrorKind::InvalidArgument, "COMPUTE_INLINE", "{} is an output and cannot be inlined",
         context.record().name);
  }
  KILN_CHECK(!context.record().is_reduction());  // the state refuses it
  context.record().attach = {Attach::Kind::Inline, 0, 0, context.position};
}

template <>
void apply<StepKind::ComputeRoot>(const StepContext& context) {
  Stage& stage = context.record();
  if (stage.role.cell_of < 0) {
    stage.attach = {};
  } else {
    const auto scan = static_cast<StageId>(stage.role.cell_of);
    stage.attach = {Attach::Kind::At, scan, context.graph[scan].as_scan.time, -1};
  }
}

void check_attachments(StageGraph& graph, const language::Schedule& schedule) {
  // Cells that no step has moved follow the scan's time loops, whatever became of them.
  for (Stage& stage : graph.stages) {
    if (stage.role.cell_of < 0 || stage.attach.step >= 0) continue;
    if (graph[stage.attach.stage].kind != Stage::Kind::Scan) continue;
    stage.attach.axis = graph[stage.attach.stage].loops.leaves.back();
  }
  for (StageId id = 0; id < graph.stages.size(); ++id) {
    const Stage& stage = graph[id];
    if (stage.part_of && stage.is_live && stage.is_reduction()) attach_hidden_reduction(graph, id);
  }
  for (StageId id = 0; id < graph.stages.size(); ++id) {
    const Stage& stage = graph[id];
    if (!stage.is_live || stage.attach.kind != Attach::Kind::At) continue;
    if (stage.attach.step < 0) continue;
    const language::Step& step = schedule.steps[static_cast<size_t>(stage.attach.step)];
    std::string text =
        fmt::format("compute_at({}, {}.{})", stage.name, graph[stage.attach.stage].name,
                    graph.axes[stage.attach.axis].name);
    at_step(graph, step, stage.attach.step, text, [&] { check_attachment(graph, id); });
  }
}

}  // namespace kiln::schedule
