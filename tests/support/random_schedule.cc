// Draws schedules from a table with a row for each step, by weight. A draw that finds no place adds
// nothing, so more are made than steps are wanted.
#include "tests/support/random_schedule.h"

#include <algorithm>
#include <vector>

#include "compiler/language/state/schedule_state.h"
#include "runtime/core/error.h"
#include "tests/support/schedule_drawer.h"

namespace kiln::testing {
namespace {

/// Most steps are drawn alike often; these more, since others soon leave no place for them, or much
/// follows from them.
constexpr int weight_of(StepKind kind) {
  switch (kind) {
    case StepKind::Split:
    case StepKind::Vectorize:
    case StepKind::Unroll:
    case StepKind::ComputeInline:
    case StepKind::Rfactor: return 2;
    case StepKind::CachePadded:
    case StepKind::ReductionStage:
    case StepKind::RollingBuffer: return 4;
    default: return 1;
  }
}

/// The same for GPUs.
constexpr int gpu_weight_of(StepKind kind) {
  switch (kind) {
    case StepKind::Bind: return 16;
    case StepKind::Split: return 10;
    case StepKind::ComputeAt:
    case StepKind::CacheRead: return 5;
    case StepKind::CacheWrite:
    case StepKind::Fuse:
    case StepKind::Reorder: return 3;
    default: return 1;
  }
}

struct StepDraw {
  StepKind kind;
  int weight;
  int gpu_weight;
  void (*draw)(ScheduleDrawer&, DrawnStage&);
};

/// One for each row of the step table; the fuzz test asserts the share of each. Tensorize comes
/// last, so that a seed stands for the schedule that it has always stood for.
std::vector<StepDraw> step_draws() {
  std::vector<StepDraw> steps = {
#define STEP(name, ...) \
  {StepKind::name, weight_of(StepKind::name), gpu_weight_of(StepKind::name), draw<StepKind::name>},
#include "compiler/language/tables/steps.def"
#undef STEP
  };
  std::stable_partition(steps.begin(), steps.end(),
                        [](const StepDraw& step) { return step.kind != StepKind::Tensorize; });
  return steps;
}

const StepDraw& pick(Random& random, int StepDraw::*weight) {
  static const std::vector<StepDraw> steps = step_draws();
  int total = 0;
  for (const StepDraw& step : steps)
    total += step.*weight;
  int drawn = random.below(total);
  for (const StepDraw& step : steps) {
    drawn -= step.*weight;
    if (drawn < 0) return step;
  }
  return steps[0];
}

/// Many a draw finds no place.
void draw_steps(ScheduleDrawer& drawer, size_t steps, int StepDraw::*weight) {
  for (size_t i = 0; i < steps * 3 && drawer.schedule.steps.size() < steps; ++i) {
    if (drawer.stages.empty() || drawer.is_refused) break;
    DrawnStage& stage = drawer.stages[drawer.random.below(static_cast<int>(drawer.stages.size()))];
    pick(drawer.random, weight).draw(drawer, stage);
  }
}

}  // namespace

language::Schedule random_schedule(const language::Definition& definition, Random& random) {
  ScheduleDrawer drawer(definition, random);
  // Few: with many, most schedules are refused or look alike.
  const size_t steps = static_cast<size_t>(random.between(1, 8));
  // Other steps soon leave no loops that suit an intrinsic.
  for (size_t i = 0; i < drawer.stages.size(); ++i) {
    if (random.chance(0.7)) draw<StepKind::Tensorize>(drawer, drawer.stages[i]);
  }
  draw_steps(drawer, steps, &StepDraw::weight);
  return std::move(drawer.schedule);
}

language::Schedule random_gpu_schedule(const language::Definition& definition, Random& random) {
  ScheduleDrawer drawer(definition, random);
  drawer.is_for_gpu = true;
  draw_steps(drawer, static_cast<size_t>(random.between(2, 10)), &StepDraw::gpu_weight);
  return std::move(drawer.schedule);
}

language::Schedule accepted_steps(const language::Kernel& kernel,
                                  const language::Schedule& schedule) {
  language::Schedule accepted;
  language::ScheduleState state(kernel.definition, kernel.names);
  try {
    for (const language::Step& step : schedule.steps) {
      state.apply(step);
      accepted.steps.push_back(step);
    }
  } catch (const Error& error) {
    KILN_CHECK(error.kind() != ErrorKind::Internal);
  }
  return accepted;
}

}  // namespace kiln::testing
