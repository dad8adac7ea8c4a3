#include "compiler/schedule/steps/apply_steps.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "compiler/ir/build.h"
#include "compiler/ir/launch.h"
#include "compiler/ir/print.h"
#include "compiler/schedule/bounds/infer_bounds.h"
#include "compiler/schedule/graph/reads.h"
#include "compiler/schedule/graph/scatters.h"
#include "compiler/schedule/steps/check_tiles.h"
#include "compiler/schedule/steps/new_stage.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {
namespace {

using language::Step;
using language::StepKind;

void apply(const StepContext& context, const NewStage& made) {
  switch (context.step.kind) {
    case StepKind::Split: return apply_split(context);
    case StepKind::Fuse: return apply_fuse(context);
    case StepKind::Tile: return apply_tile(context);
    case StepKind::Reorder: return apply_reorder(context);
    case StepKind::Bind: return apply_bind(context);
    case StepKind::Parallel: return apply_parallel(context);
    case StepKind::Vectorize: return apply_vectorize(context);
    case StepKind::Unroll: return apply_unroll(context);
    case StepKind::ComputeAt: return apply_compute_at(context);
    case StepKind::ComputeInline: return apply_compute_inline(context);
    case StepKind::ComputeRoot: return apply_compute_root(context);
    case StepKind::CacheRead: return apply_cache_read(context, made);
    case StepKind::CachePadded: return apply_cache_padded(context, made);
    case StepKind::CacheWrite: return apply_cache_write(context, made);
    case StepKind::Rfactor: return apply_rfactor(context, made);
    case StepKind::ReductionStage: return apply_reduction_stage(context, made);
    case StepKind::SetScope: return apply_set_scope(context);
    case StepKind::StorageAlign: return apply_storage_align(context);
    case StepKind::DoubleBuffer: return apply_double_buffer(context);
    case StepKind::Tensorize: return apply_tensorize(context);
    case StepKind::Pragma: return apply_pragma(context);
    case StepKind::Prefetch: return apply_prefetch(context);
    case StepKind::EnvThreads: return apply_env_threads(context);
    case StepKind::SoftwarePipeline: return apply_software_pipeline(context);
  }
  KILN_CHECK(false);
}

/// The stage whose loops the axes are: that of the step, or the reduction taken out of it.
StageId owner_of(const StageGraph& graph, const Step& step, const std::vector<AxisId>& axes) {
  if (axes.empty()) return step.stage;
  const StageId whole = step.kind == StepKind::CacheRead ? step.readers[0] : step.stage;
  const StageId owner = graph.axes[axes[0]].stage;
  for (const AxisId axis : axes) {
    if (graph.axes[axis].stage == owner) continue;
    fail(ErrorKind::InvalidArgument, "FOREIGN_AXIS",
         "{} and {} are not loops of one nest: the reduction over {} inside {} is computed before "
         "{}'s other loops",
         graph.axes[axes[0]].name, graph.axes[axis].name,
         graph.axes[graph.axes[axis].kind == AxisKind::Reduce ? axis : axes[0]].name,
         graph[whole].name, graph[whole].name);
  }
  KILN_CHECK(is_part_of(graph, owner, whole));  // decode_schedule() refuses others
  return owner;
}

void require_leaves(const StageGraph& graph, StageId stage, const std::vector<AxisId>& axes) {
  const std::vector<AxisId>& leaves = graph[stage].leaves;
  for (const AxisId axis : axes) {
    if (std::find(leaves.begin(), leaves.end(), axis) != leaves.end()) continue;
    fail(ErrorKind::InvalidArgument, "CONSUMED_AXIS",
         "{} is not a loop of {} any more; its loops are {}", graph.axes[axis].name,
         graph[stage].name, names_of_axes(graph, leaves));
  }
}

/// Time runs in order, so the loop of an update's time axis is the scan's.
void refuse_update_time(const StageGraph& graph, StageId stage, const std::vector<AxisId>& axes) {
  if (!graph[stage].is_update) return;
  const AxisId time = graph[stage].time_axis();
  if (std::find(axes.begin(), axes.end(), time) == axes.end()) return;
  const Stage& scan = graph[static_cast<StageId>(graph[stage].cell_of)];
  fail(ErrorKind::InvalidArgument, "TIME_AXIS",
       "{} is the time axis of {}, whose steps {} computes one by one; schedule {} of {} instead",
       graph.axes[time].name, scan.name, graph[stage].name, graph.axes[scan.time].name, scan.name);
}

/// Lanes, copies and threads are counted before the kernel runs.
void refuse_data_extent(const Axis& axis) {
  const bool is_plain = axis.loop_kind == ir::LoopKind::Serial;
  if (is_plain && axis.thread == ir::ThreadAxis::None) return;
  const char* const what = axis.thread != ir::ThreadAxis::None          ? "bind"
                           : axis.loop_kind == ir::LoopKind::Vectorized ? "vectorize"
                           : axis.loop_kind == ir::LoopKind::Unrolled   ? "unroll"
                                                                        : "run in parallel";
  fail(ErrorKind::Unsupported, "DATA_EXTENT",
       "cannot {} {}: its extent is read from a tensor; split it by a factor first", what,
       axis.name);
}

}  // namespace

std::string names_of_axes(const StageGraph& graph, const std::vector<AxisId>& axes) {
  std::string text;
  for (const AxisId axis : axes) {
    if (!text.empty()) text += ", ";
    text += graph.axes[axis].name;
  }
  return text;
}

std::string describe(const StageGraph& graph, const Step& step, const std::vector<AxisId>& axes) {
  std::string arguments = names_of_axes(graph, axes);
  const bool is_read = step.kind == StepKind::CacheRead;
  const bool is_of_tensor = language::defines_stage(step.kind) || step.kind == StepKind::Prefetch ||
                            step.kind == StepKind::ComputeAt;
  if (is_of_tensor && (axes.empty() || is_read)) {
    arguments = graph.tensor_name({step.stage, step.output});
  }
  const auto add = [&](const std::string& text) {
    arguments += (arguments.empty() ? "" : ", ") + text;
  };
  for (const int64_t factor : step.factors) {
    add(step.kind == StepKind::Tile ? fmt::format("{}", factor) : fmt::format("factor={}", factor));
  }
  if (step.parts) add(fmt::format("nparts={}", *step.parts));
  if (!step.tag.empty()) add(step.tag);
  if (step.kind == StepKind::ComputeAt) {
    add(fmt::format("{}.{}", graph[step.at_stage].name, graph.axes[step.at_axis].name));
  }
  if (step.kind == StepKind::Prefetch) add(graph.axes[step.at_axis].name);
  for (const std::string& tag : step.tags)
    add(tag);
  for (const uint32_t reader : step.readers)
    add(graph[reader].name);
  if (is_read && !axes.empty()) add(names_of_axes(graph, axes));
  return fmt::format("{}({})", language::row_of(step.kind).spelling, arguments);
}

bool is_part_of(const StageGraph& graph, StageId part, StageId stage) {
  return part == stage || (part < graph.stages.size() && graph[part].part_of == stage);
}

namespace {

/// The step with the positions of the graph for its ids.
Step resolve(const StageGraph& graph, const Step& step) {
  const auto stage = [&](uint32_t id) {
    KILN_CHECK(id < graph.stage_of_id.size());
    return graph.stage_of_id[id];
  };
  const auto axis = [&](uint32_t id) {
    KILN_CHECK(id < graph.axis_of_id.size());
    return graph.axis_of_id[id];
  };
  Step resolved = step;
  resolved.stage = stage(step.stage);
  for (uint32_t& id : resolved.axes)
    id = axis(id);
  for (uint32_t& id : resolved.readers)
    id = stage(id);
  if (language::row_of(step.kind).uses(language::step_fields::At)) {
    resolved.at_stage = stage(step.at_stage);
    resolved.at_axis = axis(step.at_axis);
  }
  return resolved;
}

/// Enters the step into the table; what it makes, by the names there.
NewStage new_stage(const StageGraph& graph, language::AxisTable& table, const Step& step,
                   const Step& resolved, int position) {
  NewStage made;
  made.readers = resolved.readers;
  for (const language::AxisId axis : table.stages[step.stage].reduce)
    made.reduced.push_back(graph.axis_of_id[axis]);
  apply(table, step, position);
  if (!language::defines_stage(step.kind)) return made;
  const language::AxisTable::Stage& stage = table.stages.back();
  made.name = stage.name;
  for (const language::AxisId axis : stage.data)
    made.data.push_back(table.rows[axis].name);
  for (const language::AxisId axis : stage.reduce)
    made.reduce.push_back(table.rows[axis].name);
  return made;
}

/// A loop inside another one that is bound to the same thread axis. On a CPU both are loops like
/// others; on a GPU the threads are the same ones, which fill shared memory for each other.
void check_bound_twice(const StageGraph& graph, const NestPlan& plan, StageId id, const Loop& loop,
                       const Loop& around, TargetKind target) {
  const Axis& axis = graph.axes[loop.axis];
  if (!traits_of(target).has_threads && is_thread_index(axis.thread)) return;
  if (!is_filled_by_threads(graph, plan, id, target) || !is_thread_index(axis.thread)) {
    fail(ErrorKind::Unsupported, "THREAD_AXIS",
         "cannot bind {} of {} to {}: it runs inside {}, which is bound to it already{}", axis.name,
         graph[id].name, ir::name_of(axis.thread), graph.axes[around.axis].name,
         is_thread_index(axis.thread)
             ? "; threads share their work only on a stage in shared memory"
             : "");
  }
  if (analysis::can_prove(ir::less_equal(loop.extent, around.extent), facts_of_sizes(graph)))
    return;
  fail(ErrorKind::Unsupported, "THREAD_EXTENT",
       "cannot bind {} of {} to {}: it has {} iterations, but {}, inside which it runs, has {}; "
       "split {} into {} parts first",
       axis.name, graph[id].name, ir::name_of(axis.thread), loop.extent,
       graph.axes[around.axis].name, around.extent, axis.name, around.extent);
}

void check_thread(const StageGraph& graph, const NestPlan& plan, StageId id, const Loop& loop,
                  TargetKind target) {
  const Axis& axis = graph.axes[loop.axis];
  if (axis.kind == AxisKind::Reduce && traits_of(target).has_threads) {
    fail(ErrorKind::Unsupported, "REDUCTION_AXIS",
         "cannot bind {} on a GPU: it is a reduction axis, and all its iterations change one "
         "element of {}; leave it unbound, rfactor {} over it first unless that is done, and bind "
         "the axis of the partial results",
         axis.name, graph[id].name, graph[id].name);
  }
  for (const Loop* around : loops_around(graph, plan, id)) {
    if (graph.axes[around->axis].thread == axis.thread && axis.thread != ir::ThreadAxis::VThread)
      check_bound_twice(graph, plan, id, loop, *around, target);
  }
}

}  // namespace

void apply_steps(StageGraph& graph, const language::Schedule& schedule) {
  language::AxisTable table = axis_table(graph.kernel->definition, graph.kernel->names);
  for (size_t i = 0; i < schedule.steps.size(); ++i) {
    const auto position = static_cast<int>(i);
    const Step step = resolve(graph, schedule.steps[i]);
    const NewStage made = new_stage(graph, table, schedule.steps[i], step, position);
    std::vector<AxisId> defined;
    const auto stages = static_cast<StageId>(graph.stages.size());
    at_step(graph, step, position, describe(graph, step, step.axes), [&] {
      // It is about an expression: its axes, if any, are not loops of one nest.
      const bool names_expression =
          step.kind == StepKind::ReductionStage || step.kind == StepKind::CachePadded;
      const StageId stage = names_expression ? step.stage : owner_of(graph, step, step.axes);
      // A dimension stays one, whatever became of its loop.
      if (step.kind != StepKind::StorageAlign && !names_expression)
        require_leaves(graph, stage, step.axes);
      if (!names_expression) refuse_update_time(graph, stage, step.axes);
      if (names_expression) {
        // Which stages there are says nothing of how they run.
      } else if (step.kind == StepKind::Prefetch) {
        graph.stages[step.at_stage].is_touched = true;
      } else {
        graph.stages[step.stage].is_touched = graph.stages[stage].is_touched = true;
      }
      const StageId about = step.kind == StepKind::CacheRead ? step.stage : stage;
      apply(StepContext{graph, step, position, about, step.axes, defined}, made);
    });
    if (graph.stages.size() > stages) graph.stage_of_id.push_back(stages);
    graph.axis_of_id.insert(graph.axis_of_id.end(), defined.begin(), defined.end());
  }
  refuse_large_inlining(graph);
  check_attachments(graph, schedule);
  check_hints(graph, schedule);
  check_scatters(graph, schedule);
}

namespace {

/// `copies` is how often the loops around this one are written out.
void refuse_many_copies(const Axis& axis, const Loop& loop, const CompileLimits& limits,
                        int64_t& copies) {
  if (__builtin_mul_overflow(copies, *ir::as_const_int(loop.extent), &copies)) {
    copies = std::numeric_limits<int64_t>::max();
  }
  if (copies <= limits.unrolled_iterations) return;
  fail(ErrorKind::ResourceExhausted, "UNROLL_LIMIT",
       "unrolling {} makes {} copies of its body; the limit is {}; split it and unroll the inner "
       "loop",
       axis.name, copies, limits.unrolled_iterations);
}

void refuse_long_thread_axis(const Axis& axis, const Loop& loop) {
  const std::optional<int64_t> extent = ir::as_const_int(loop.extent);
  if (axis.thread == ir::ThreadAxis::None || !extent) return;
  const int64_t limit = ir::launch_limit(axis.thread);
  if (axis.thread == ir::ThreadAxis::VThread || *extent <= limit) return;
  fail(ErrorKind::InvalidArgument, "THREAD_EXTENT",
       "{} is bound to {} with {} iterations, but CUDA allows at most {}; split it before bind()",
       axis.name, ir::name_of(axis.thread), *extent, limit);
}

/// Threads fill shared memory together, so all of them must run the loops around it equally often.
void refuse_fill_in_data_loop(const StageGraph& graph, const NestPlan& plan, StageId id,
                              TargetKind target) {
  if (graph[id].attach.step < 0 || !is_filled_by_threads(graph, plan, id, target)) return;
  for (const Loop* loop : loops_around(graph, plan, id)) {
    if (!has_read(loop->extent)) continue;
    const std::string& axis = graph.axes[loop->axis].name;
    fail(ErrorKind::Unsupported, "SHARED_LOOP",
         "the threads of a block cannot fill {} together inside {}: data says for each thread how "
         "often it runs; compute {} outside of {}",
         graph[id].name, axis, graph[id].name, axis);
  }
}

}  // namespace

void check_loops(const StageGraph& graph, const NestPlan& plan, const language::Schedule& schedule,
                 TargetKind target, const CompileLimits& limits) {
  for (const StageId id : graph.order) {
    if (!graph[id].is_live) continue;
    at_stage(graph, id, [&] { refuse_fill_in_data_loop(graph, plan, id, target); });
    int64_t copies = 1;
    for (const Loop& loop : plan.nests[id].loops) {
      const Axis& axis = graph.axes[loop.axis];
      if (axis.annotated_by < 0) continue;
      const Step& step = schedule.steps[static_cast<size_t>(axis.annotated_by)];
      at_step(graph, step, axis.annotated_by, describe(graph, step, {loop.axis}), [&] {
        if (has_read(loop.extent)) refuse_data_extent(axis);
        if (axis.intrinsic) check_tile(graph, plan.nests[id], id, loop);
        const bool is_vector = axis.loop_kind == ir::LoopKind::Vectorized;
        if ((is_vector || axis.loop_kind == ir::LoopKind::Unrolled) &&
            !ir::as_const_int(loop.extent)) {
          fail(ErrorKind::Unsupported, is_vector ? "VECTORIZE_EXTENT" : "UNROLL_EXTENT",
               "cannot {} {}: its extent {} is not a constant; split it first",
               is_vector ? "vectorize" : "unroll", axis.name, loop.extent);
        }
        if (axis.loop_kind == ir::LoopKind::Unrolled)
          refuse_many_copies(axis, loop, limits, copies);
        if (traits_of(target).has_threads) refuse_long_thread_axis(axis, loop);
        if (axis.thread != ir::ThreadAxis::None && !loop.is_shared)
          check_thread(graph, plan, id, loop, target);
      });
    }
  }
}

}  // namespace kiln::schedule
