// Draws where stages are computed: at a loop of their only reader, inline, or at the root. Outputs
// stay where they are, but what reads them may do so inline.
#include "tests/support/schedule_drawer.h"

namespace kiln::testing {

using language::StepKind;

template <>
void draw<StepKind::ComputeAt>(ScheduleDrawer& drawer, DrawnStage& stage) {
  if (drawer.is_output(stage.stage) || stage.placed) return;
  const std::vector<language::StageId> readers = drawer.readers_of(stage.stage);
  if (readers.size() != 1) return;
  DrawnStage* reader = drawer.find(readers[0]);
  if (reader == nullptr || reader->leaves.empty()) return;
  Leaf& leaf = reader->leaves[drawer.random.below(static_cast<int>(reader->leaves.size()))];
  leaf.taken = true;  // it must stay a loop of the reader
  stage.placed = true;
  drawer.add({.kind = StepKind::ComputeAt,
              .stage = stage.stage,
              .at_stage = reader->stage,
              .at_axis = leaf.axis});
}

template <>
void draw<StepKind::ComputeInline>(ScheduleDrawer& drawer, DrawnStage& stage) {
  if (!stage.inlinable || stage.placed || drawer.is_touched(stage.stage)) return;
  stage.placed = true;
  stage.leaves.clear();
  drawer.add({.kind = StepKind::ComputeInline, .stage = stage.stage});
}

template <>
void draw<StepKind::ComputeRoot>(ScheduleDrawer& drawer, DrawnStage& stage) {
  if (stage.placed) return;
  drawer.add({.kind = StepKind::ComputeRoot, .stage = stage.stage});
}

}  // namespace kiln::testing
