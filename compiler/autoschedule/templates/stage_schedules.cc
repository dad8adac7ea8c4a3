// Which sketches a computed stage has: those of a matrix product if it is one, of a window that
// slides, of a reduction, of elements.
#include "compiler/autoschedule/templates/stage_schedules.h"

#include "compiler/autoschedule/recognise/rows.h"
#include "compiler/autoschedule/templates/batch_sketches.h"
#include "compiler/autoschedule/templates/window_sketches.h"

namespace kiln::autoschedule {

std::vector<Sketch> compute_sketches(const Chooser& chooser, StageId id, bool may_be_parallel,
                                     size_t dimensions) {
  if (!chooser.graph[id].is_reduction())
    return element_sketches(chooser, id, may_be_parallel, dimensions);
  const std::optional<Contraction> found = find_contraction(chooser.graph, id);
  // One row shares nothing with others: its columns are sums down columns.
  if (found && constant_extent(chooser.graph, found->row) != 1) {
    std::vector<Sketch> sketches = contraction_sketches(chooser, id, *found, may_be_parallel);
    if (!sketches.empty()) return sketches;
  }
  std::vector<Sketch> sketches = batch_sketches(chooser, id, may_be_parallel);
  if (!sketches.empty()) return sketches;
  sketches = reduction_sketches(chooser, id, may_be_parallel, dimensions);
  if (std::optional<Sketch> window = window_sketch(chooser, id, may_be_parallel)) {
    sketches.insert(sketches.begin(), *std::move(window));
  }
  return sketches;
}

void schedule_row(const Chooser& chooser, StepWriter& steps, StageId id, size_t dimensions) {
  if (!has_rows(chooser.graph, id, dimensions)) return;
  const std::vector<Sketch> sketches =
      compute_sketches(chooser, id, /*may_be_parallel=*/false, dimensions);
  if (!sketches.empty()) sketches[0].write_preferred(steps);
}

}  // namespace kiln::autoschedule
