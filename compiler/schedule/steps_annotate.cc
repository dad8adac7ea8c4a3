#include <algorithm>

#include "compiler/schedule/steps.h"

namespace kiln::schedule {
namespace {

std::string_view participle_of(ir::LoopKind kind) {
  switch (kind) {
    case ir::LoopKind::Parallel: return "parallel";
    case ir::LoopKind::Vectorized: return "vectorized";
    case ir::LoopKind::Unrolled: return "unrolled";
    case ir::LoopKind::ThreadIndex: return "bound";
    case ir::LoopKind::Serial: break;
  }
  return "serial";
}

void annotate_axis(const StepContext& context, ir::LoopKind kind, ir::ThreadAxis thread) {
  Axis& axis = context.axis(0);
  if (axis.annotated_by >= 0 && (axis.loop_kind != kind || axis.thread != thread)) {
    fail(ErrorKind::InvalidArgument, "ANNOTATED_AXIS", "{} is {} already, by step {}", axis.name,
         participle_of(axis.loop_kind), axis.annotated_by + 1);
  }
  axis.loop_kind = kind;
  axis.thread = thread;
  axis.annotated_by = context.position;
}

/// "i, j": what may run at once in a stage whose reduction may not.
std::string data_loops(const StepContext& context) {
  std::vector<AxisId> loops;
  for (const AxisId leaf : context.record().leaves) {
    if (context.graph.axes[leaf].kind == AxisKind::Data) loops.push_back(leaf);
  }
  return names_of_axes(context.graph, loops);
}

/// Iterations that add to one element, or need the step before, cannot run at once.
void refuse_dependent(const StepContext& context, std::string_view what, bool reduction_too) {
  const Axis& axis = context.axis(0);
  if (axis.kind == AxisKind::Time) {
    fail(ErrorKind::Unsupported, "TIME_AXIS",
         "cannot {} {}: each time step of {} needs the one before; {} an axis of its update instead",
         what, axis.name, context.record().name, what);
  }
  if (axis.kind != AxisKind::Reduce || !reduction_too) return;
  const std::string others = data_loops(context);
  const std::string way_out =
      others.empty() ? fmt::format("vectorize({}) is possible", axis.name)
                     : fmt::format("{} one of {}, or vectorize {}", what, others, axis.name);
  fail(ErrorKind::Unsupported, "REDUCTION_AXIS",
       "cannot {} {}: it is a reduction axis, all its iterations add to one element of {}; {}", what,
       axis.name, context.record().name, way_out);
}

}  // namespace

void apply_bind(const StepContext& context) {
  const std::optional<ir::ThreadAxis> thread = ir::find_thread_axis(context.step.tag);
  if (!thread) {
    fail(ErrorKind::InvalidArgument, "THREAD_TAG",
         "cannot bind {} to \"{}\"; thread axes are blockIdx.x, .y, .z, threadIdx.x, .y, .z and "
         "vthread",
         context.axis(0).name, context.step.tag);
  }
  refuse_dependent(context, "bind", true);
  for (const AxisId leaf : context.record().leaves) {
    const Axis& other = context.graph.axes[leaf];
    if (leaf == context.axes[0] || other.thread != *thread || *thread == ir::ThreadAxis::VThread) {
      continue;
    }
    fail(ErrorKind::InvalidArgument, "THREAD_AXIS", "cannot bind {} to {}: {} is bound to it already",
         context.axis(0).name, context.step.tag, other.name);
  }
  annotate_axis(context, ir::LoopKind::ThreadIndex, *thread);
}

void apply_parallel(const StepContext& context) {
  refuse_dependent(context, "parallel", true);
  annotate_axis(context, ir::LoopKind::Parallel, ir::ThreadAxis::None);
}

void apply_vectorize(const StepContext& context) {
  refuse_dependent(context, "vectorize", false);
  annotate_axis(context, ir::LoopKind::Vectorized, ir::ThreadAxis::None);
}

void apply_unroll(const StepContext& context) {
  annotate_axis(context, ir::LoopKind::Unrolled, ir::ThreadAxis::None);
}

}  // namespace kiln::schedule
