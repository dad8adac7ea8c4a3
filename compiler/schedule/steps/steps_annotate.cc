#include <algorithm>

#include "compiler/schedule/steps/steps.h"

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

/// "i or j": what may run at once in a stage whose reduction may not.
std::string data_loops(const StepContext& context) {
  std::string text;
  for (const AxisId leaf : context.record().leaves) {
    const Axis& axis = context.graph.axes[leaf];
    if (axis.kind == AxisKind::Data) text += (text.empty() ? "" : " or ") + axis.name;
  }
  return text;
}

/// "run k in parallel"
std::string phrase_of(const StepContext& context) {
  const std::string& axis = context.axis(0).name;
  if (context.step.kind == language::StepKind::Parallel)
    return fmt::format("run {} in parallel", axis);
  return fmt::format("{} {}", language::row_of(context.step.kind).spelling, axis);
}

void refuse_time(const StepContext& context) {
  if (context.axis(0).kind != AxisKind::Time) return;
  fail(ErrorKind::Unsupported, "TIME_AXIS",
       "cannot {}: each time step of {} needs the one before; {} an axis of its update instead",
       phrase_of(context), context.record().name, language::row_of(context.step.kind).spelling);
}

/// Iterations that all change one element cannot run at once.
void refuse_reduction(const StepContext& context) {
  const Axis& axis = context.axis(0);
  if (axis.kind != AxisKind::Reduce) return;
  const std::string_view verb = language::row_of(context.step.kind).spelling;
  const std::string& stage = context.record().name;
  const std::string others = data_loops(context);
  const std::string way_out = others.empty() ? "" : fmt::format("{} {}, or ", verb, others);
  fail(ErrorKind::Unsupported, "REDUCTION_AXIS",
       "cannot {}: it is a reduction axis, and all its iterations change one element of {}; "
       "{}vectorize {}, or rfactor {} over it and {} that axis of the partial results",
       phrase_of(context), stage, way_out, axis.name, stage, verb);
}

}  // namespace

void apply_bind(const StepContext& context) {
  const std::optional<ir::ThreadAxis> thread = ir::find_thread_axis(context.step.tag);
  KILN_CHECK(thread.has_value());
  refuse_time(context);
  // Threads of a block run one after the other on a CPU; check_loops() knows the target.
  const bool is_block = *thread == ir::ThreadAxis::BlockX || *thread == ir::ThreadAxis::BlockY ||
                        *thread == ir::ThreadAxis::BlockZ;
  if (is_block) refuse_reduction(context);
  for (const AxisId leaf : context.record().leaves) {
    const Axis& other = context.graph.axes[leaf];
    if (leaf == context.axes[0] || other.thread != *thread || *thread == ir::ThreadAxis::VThread) {
      continue;
    }
    fail(ErrorKind::InvalidArgument, "THREAD_AXIS",
         "cannot bind {} to {}: {} is bound to it already", context.axis(0).name, context.step.tag,
         other.name);
  }
  annotate_axis(context, ir::LoopKind::ThreadIndex, *thread);
}

void apply_parallel(const StepContext& context) {
  refuse_time(context);
  refuse_reduction(context);
  annotate_axis(context, ir::LoopKind::Parallel, ir::ThreadAxis::None);
}

void apply_vectorize(const StepContext& context) {
  refuse_time(context);
  annotate_axis(context, ir::LoopKind::Vectorized, ir::ThreadAxis::None);
}

void apply_unroll(const StepContext& context) {
  annotate_axis(context, ir::LoopKind::Unrolled, ir::ThreadAxis::None);
}

}  // namespace kiln::schedule
