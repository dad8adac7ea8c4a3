// How a loop runs, where the state has taken the step: threads, cores, lanes, or written out.
// Iterations of a reduction all change one element, so they may not run at once.
//   C[i] = sum[k](..);  parallel(k)  ->  refused: parallel i, or vectorize k
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {
namespace {

void annotate_axis(const StepContext& context, ir::LoopKind kind, ir::ThreadAxis thread) {
  Axis& axis = context.axis(0);
  axis.loop_kind = kind;
  axis.thread = thread;
  axis.annotated_by = context.position;
}

/// "i or j": what may run at once in a stage whose reduction may not.
std::string data_loops(const StepContext& context) {
  std::string text;
  for (const AxisId leaf : context.record().loops.leaves) {
    const Axis& axis = context.graph.axes[leaf];
    if (axis.kind == AxisKind::Data) text += (text.empty() ? "" : " or ") + axis.name;
  }
  return text;
}

/// "run k in parallel"
std::string phrase_of(const StepContext& context) {
  const std::string& axis = context.axis(0).name;
  if (context.step.kind == StepKind::Parallel) return fmt::format("run {} in parallel", axis);
  return fmt::format("{} {}", language::row_of(context.step.kind).spelling, axis);
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

template <>
void apply<StepKind::Bind>(const StepContext& context) {
  const std::optional<ir::ThreadAxis> thread = ir::find_thread_axis(context.step.tag);
  KILN_CHECK(thread.has_value());
  // Threads of a block run one after the other on a CPU; check_loops() knows the target.
  const bool is_block = *thread == ir::ThreadAxis::BlockX || *thread == ir::ThreadAxis::BlockY ||
                        *thread == ir::ThreadAxis::BlockZ;
  if (is_block) refuse_reduction(context);
  annotate_axis(context, ir::LoopKind::ThreadIndex, *thread);
}

template <>
void apply<StepKind::Parallel>(const StepContext& context) {
  refuse_reduction(context);
  annotate_axis(context, ir::LoopKind::Parallel, ir::ThreadAxis::None);
}

template <>
void apply<StepKind::Vectorize>(const StepContext& context) {
  annotate_axis(context, ir::LoopKind::Vectorized, ir::ThreadAxis::None);
}

template <>
void apply<StepKind::Unroll>(const StepContext& context) {
  annotate_axis(context, ir::LoopKind::Unrolled, ir::ThreadAxis::None);
}

}  // namespace kiln::schedule
