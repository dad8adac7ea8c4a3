// Draws schedules from a table with a row for each step, by weight. A draw that finds no place adds
// nothing, so more are made than steps are wanted.
#include "tests/support/random_schedule.h"

#include "compiler/language/state/schedule_state.h"
#include "runtime/core/error.h"
#include "tests/support/schedule_drawer.h"

namespace kiln::testing {
namespace {

struct StepDraw {
  language::StepKind kind;
  int weight;
  DrawStep draw;
};

using language::StepKind;

/// Every row of the step table; the fuzz test asserts the share of each.
constexpr StepDraw kSteps[] = {
    {StepKind::Split, 2, draw_split},
    {StepKind::Fuse, 1, draw_fuse},
    {StepKind::Tile, 1, draw_tile},
    {StepKind::Reorder, 1, draw_reorder},
    {StepKind::Bind, 1, draw_bind},
    {StepKind::Parallel, 1, draw_parallel},
    {StepKind::Vectorize, 2, draw_vectorize},
    {StepKind::Unroll, 2, draw_unroll},
    {StepKind::ComputeAt, 1, draw_compute_at},
    {StepKind::ComputeInline, 2, draw_compute_inline},
    {StepKind::ComputeRoot, 1, draw_compute_root},
    {StepKind::CacheRead, 1, draw_cache_read},
    {StepKind::CachePadded, 4, draw_cache_padded},
    {StepKind::CacheWrite, 1, draw_cache_write},
    {StepKind::Rfactor, 2, draw_rfactor},
    {StepKind::ReductionStage, 4, draw_reduction_stage},
    {StepKind::SetScope, 1, draw_set_scope},
    {StepKind::StorageAlign, 1, draw_storage_align},
    {StepKind::TransformLayout, 1, draw_transform_layout},
    {StepKind::DoubleBuffer, 1, draw_double_buffer},
    {StepKind::RollingBuffer, 4, draw_rolling_buffer},
    {StepKind::Pragma, 1, draw_pragma},
    {StepKind::Prefetch, 1, draw_prefetch},
    {StepKind::EnvThreads, 1, draw_env_threads},
    {StepKind::SoftwarePipeline, 1, draw_software_pipeline},
    {StepKind::Tensorize, 1, draw_tensorize},
};

const StepDraw& pick(Random& random) {
  int total = 0;
  for (const StepDraw& step : kSteps)
    total += step.weight;
  int drawn = random.below(total);
  for (const StepDraw& step : kSteps) {
    drawn -= step.weight;
    if (drawn < 0) return step;
  }
  return kSteps[0];
}

}  // namespace

language::Schedule random_schedule(const language::Definition& definition, Random& random) {
  ScheduleDrawer drawer(definition, random);
  // Few: with many, most schedules are refused or look alike.
  const size_t steps = static_cast<size_t>(random.between(1, 8));
  // Other steps soon leave no loops that suit an intrinsic.
  for (size_t i = 0; i < drawer.stages.size(); ++i) {
    if (random.chance(0.7)) draw_tensorize(drawer, drawer.stages[i]);
  }
  // Many a draw finds no place.
  for (size_t i = 0; i < steps * 3 && drawer.schedule.steps.size() < steps; ++i) {
    if (drawer.stages.empty() || drawer.is_refused) break;
    DrawnStage& stage = drawer.stages[random.below(static_cast<int>(drawer.stages.size()))];
    pick(random).draw(drawer, stage);
  }
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
