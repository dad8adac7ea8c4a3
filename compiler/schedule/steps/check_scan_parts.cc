// Which scans can run in parts, as pragma scan_in_parts asks for: running sums and the like whose
// steps are one loop, columns of which are bound around time.
//   S[t] = S[t - 1] * 2 + X[t];  pragma(t, scan_in_parts)  ->  refused
#include "compiler/schedule/steps/check_scan_parts.h"

#include <algorithm>

#include "compiler/schedule/bounds/scopes.h"
#include "compiler/schedule/graph/running_scan.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {
namespace {

template <typename... Args>
[[noreturn]] void refuse(const StageGraph& graph, StageId scan, fmt::format_string<Args...> why,
                         Args&&... args) {
  fail(ErrorKind::Unsupported, "SCAN_PARTS", "the steps of {} cannot run in parts: {}",
       graph[scan].name, fmt::format(why, std::forward<Args>(args)...));
}

void check_rounding(const StageGraph& graph, StageId scan, const CompileOptions& options) {
  const std::optional<RunningScan> running = running_scan(graph, scan);
  if (!running) {
    refuse(
        graph, scan,
        "each step has to be the state before it combined with something else by +, *, min, max, "
        "&, | or ^; leave out the pragma");
  }
  if (may_regroup(*running, options)) return;
  if (options.strict) {
    refuse(graph, scan, "strict keeps the order of {}; leave out strict or the pragma",
           name_of(running->type));
  }
  refuse(graph, scan,
         "their sums of {} would be rounded in another order; ask for fast (fast=True, --fast) or "
         "leave out the pragma",
         name_of(running->type));
}

/// What is computed in each step besides the state, and how its loops run.
void check_nests(const StageGraph& graph, const NestPlan& plan, StageId scan) {
  const Stage& stage = graph[scan];
  const Axis& time = graph.axes[stage.as_scan.time];
  if (stage.loops.leaves.size() != 1 || time.annotated_by >= 0)
    refuse(graph, scan, "other steps say how {} runs; leave them out", time.name);
  const StageId update = stage.as_scan.update[0].stage;
  if (const std::optional<StageId> other = other_in_steps(graph, scan)) {
    refuse(graph, scan,
           "{} is computed in each of them; compute_inline it, or leave out the pragma",
           graph[*other].name);
  }
  size_t blocks = 0;
  size_t threads = 0;
  for (const Loop& loop : plan.nests[update].loops) {
    const ir::ThreadAxis thread = graph.axes[loop.axis].thread;
    if (thread == ir::ThreadAxis::None || loop.is_elided) continue;
    (is_thread_index(thread) ? threads : blocks) += 1;
    const bool is_around = std::ranges::any_of(plan.nests[scan].loops, [&](const Loop& around) {
      return around.is_shared && graph.axes[around.axis].thread == thread;
    });
    if (!is_around) {
      refuse(graph, scan,
             "{} starts anew in each of them; bind the axes of its initial step and of its update "
             "alike",
             ir::name_of(thread));
    }
  }
  if (blocks == 3 || threads == 3) {
    refuse(graph, scan, "all of {} are bound; leave one for the parts",
           blocks == 3 ? "blockIdx.x, .y and .z" : "threadIdx.x, .y and .z");
  }
}

}  // namespace

void check_scan_parts(const StageGraph& graph, const NestPlan& plan,
                      const language::Schedule& schedule, const CompileOptions& options) {
  for (const StageId id : graph.order) {
    const Stage& stage = graph[id];
    if (!stage.is_live || stage.as_scan.parted_by < 0) continue;
    const language::Step& step = schedule.steps[static_cast<size_t>(stage.as_scan.parted_by)];
    at_step(graph, step, stage.as_scan.parted_by, describe(graph, step, {stage.as_scan.time}), [&] {
      check_rounding(graph, id, options);
      check_nests(graph, plan, id);
    });
  }
}

}  // namespace kiln::schedule
