// What only the extents of loops show, when all steps are taken and bounds are inferred: lanes and
// copies are counted before the kernel runs, and threads fit the launch.
//   unroll(i), i < n  ->  refused: its extent n is not a constant; split it first
#include <algorithm>
#include <limits>
#include <optional>

#include "compiler/ir/build.h"
#include "compiler/ir/launch.h"
#include "compiler/ir/print.h"
#include "compiler/schedule/bounds/nest.h"
#include "compiler/schedule/bounds/scopes.h"
#include "compiler/schedule/graph/reads.h"
#include "compiler/schedule/graph/scatters.h"
#include "compiler/schedule/steps/apply_steps.h"
#include "compiler/schedule/steps/check_scan_parts.h"
#include "compiler/schedule/steps/check_tiles.h"
#include "compiler/schedule/steps/inner_outputs.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {
namespace {

using language::Step;

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

/// Whether the order in which values are combined shows in the result.
bool is_ordered(const Stage& stage) {
  return std::ranges::any_of(stage.bodies, [](const ir::Expr& body) {
    const ir::Combination& how = ir::as<ir::Reduce>(body)->how;
    const bool rounds =
        how.reducer || how.combiner == ir::Combiner::Sum || how.combiner == ir::Combiner::Prod;
    return rounds && is_float(body->type.element);
  });
}

/// Threads of a GPU that reduce a part each put the parts together in shared memory.
void check_reducing_thread(const StageGraph& graph, const NestPlan& plan, StageId id,
                           const Loop& loop, bool strict) {
  const Stage& stage = graph[id];
  const std::string& axis = graph.axes[loop.axis].name;
  const Nest& nest = plan.nests[id];
  if (ir::is_const(loop.extent, 0)) {
    fail(ErrorKind::Unsupported, "REDUCTION_AXIS",
         "cannot bind {} on a GPU: it has no iterations, so no thread would store what {} starts "
         "from; leave {} unbound",
         axis, stage.name, axis);
  }
  for (size_t i = nest.first_reduce(); i < nest.loops.size(); ++i) {
    if (nest.loops[i].is_reduce || nest.loops[i].is_elided) continue;
    const std::string& inner = graph.axes[nest.loops[i].axis].name;
    fail(ErrorKind::Unsupported, "REDUCTION_AXIS",
         "cannot bind {} on a GPU: {} of {} stands inside its reduction, of which threads combine "
         "one element at a time; reorder {} to stand before the reduction axes",
         axis, inner, stage.name, inner);
  }
  if (strict && is_ordered(stage)) {
    fail(ErrorKind::Unsupported, "REDUCTION_AXIS",
         "cannot bind {} on a GPU: threads would combine the values of {} in another order than "
         "its definition, which strict does not allow; leave {} unbound",
         axis, stage.name, axis);
  }
  std::vector<const Loop*> loops = loops_around(graph, plan, id);
  const bool is_in_thread = std::ranges::any_of(
      loops, [&](const Loop* around) { return is_thread_index(graph.axes[around->axis].thread); });
  if (is_in_thread) {
    fail(ErrorKind::Unsupported, "REDUCTION_AXIS",
         "cannot bind {} on a GPU: {} is computed inside of threads already; compute it at a loop "
         "around them",
         axis, stage.name);
  }
  for (const Loop& around : nest.loops) {
    if (!is_thread_index(graph.axes[around.axis].thread) || ir::as_const_int(around.extent))
      continue;
    fail(ErrorKind::Unsupported, "THREAD_EXTENT",
         "cannot bind {} on a GPU: the threads of {} combine their parts of {} in shared memory, "
         "but {} has {} iterations, which is no constant; split {} by a factor first",
         axis, graph.axes[around.axis].name, stage.name, graph.axes[around.axis].name,
         around.extent, graph.axes[around.axis].name);
  }
}

void check_thread(const StageGraph& graph, const NestPlan& plan, StageId id, const Loop& loop,
                  TargetKind target, bool strict) {
  const Axis& axis = graph.axes[loop.axis];
  if (axis.kind == AxisKind::Reduce && traits_of(target).has_threads) {
    if (!is_thread_index(axis.thread)) {
      fail(
          ErrorKind::Unsupported, "REDUCTION_AXIS",
          "cannot bind {} to {} on a GPU: it is a reduction axis, whose iterations threadIdx alone "
          "can divide; leave it unbound",
          axis.name, ir::name_of(axis.thread));
    }
    check_reducing_thread(graph, plan, id, loop, strict);
  }
  for (const Loop* around : loops_around(graph, plan, id)) {
    if (graph.axes[around->axis].thread == axis.thread && axis.thread != ir::ThreadAxis::VThread)
      check_bound_twice(graph, plan, id, loop, *around, target);
  }
}

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

/// What only a CPU can follow is refused on a GPU rather than left out.
void refuse_step_of_a_cpu(const StageGraph& graph, StageId id, const Axis& axis) {
  const std::string& stage = graph[id].name;
  if (axis.intrinsic) {
    fail(ErrorKind::Unsupported, "TENSORIZE",
         "cannot tensorize {} of {} on a GPU: {} is an intrinsic of a CPU; leave the step out",
         axis.name, stage, language::row_of(*axis.intrinsic).spelling);
  }
  if (axis.loop_kind != ir::LoopKind::Parallel) return;
  fail(ErrorKind::Unsupported, "PARALLEL",
       "cannot run {} of {} in parallel on a GPU: bind() says there what runs at once; bind it to "
       "blockIdx.x or threadIdx.x",
       axis.name, stage);
}

void refuse_prefetches(const StageGraph& graph, const language::Schedule& schedule) {
  for (const Prefetch& prefetch : graph.prefetches) {
    const Step& step = schedule.steps[static_cast<size_t>(prefetch.step)];
    const Axis& axis = graph.axes[prefetch.axis];
    const std::string tensor = graph.tensor_name(prefetch.tensor);
    at_step(graph, step, prefetch.step, fmt::format("prefetch({}, {})", tensor, axis.name), [&] {
      fail(ErrorKind::Unsupported, "PREFETCH",
           "cannot prefetch {} in {} of {} on a GPU: its threads do other work while one waits; "
           "leave the step out",
           tensor, axis.name, graph[prefetch.reader].name);
    });
  }
}

}  // namespace

void check_loops(const StageGraph& graph, const NestPlan& plan, const language::Schedule& schedule,
                 TargetKind target, const CompileOptions& options) {
  check_inner_outputs(graph, plan, schedule, target);
  if (traits_of(target).has_threads) refuse_prefetches(graph, schedule);
  check_scan_parts(graph, plan, schedule, options);
  for (const StageId id : graph.order) {
    if (!graph[id].is_live) continue;
    at_stage(graph, id, [&] { refuse_fill_in_data_loop(graph, plan, id, target); });
    const bool meets = graph[id].kind == Stage::Kind::Scatter && has_meeting_threads(graph, id);
    const bool shows = options.strict && is_float(graph[id].types[0]);
    if (meets && (shows || !traits_of(target).has_threads)) {
      at_stage(graph, id, [&] { refuse_meeting_updates(graph, id, schedule); });
    }
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
          refuse_many_copies(axis, loop, options.limits, copies);
        if (traits_of(target).has_threads) {
          refuse_long_thread_axis(axis, loop);
          refuse_step_of_a_cpu(graph, id, axis);
        }
        if (axis.thread != ir::ThreadAxis::None && !loop.is_shared)
          check_thread(graph, plan, id, loop, target, options.strict);
      });
    }
  }
}

}  // namespace kiln::schedule
