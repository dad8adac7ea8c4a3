#pragma once

#include <optional>
#include <vector>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/templates/step_writer.h"

namespace kiln::autoschedule {

/// For CUDA: lines along a dimension that is not the last one, of which each thread has one, as of
/// a softmax over the channels of each place: threads side by side have lines side by side.
struct AcrossThreads {
  StageId last = 0;                 // has the loop over lines
  size_t dimension = 0;             // of `last`, along which lines are
  std::vector<StageId> reductions;  // of the line, computed in that loop
  std::vector<StageId> inlined;
};

/// What can run so; nothing where there are too few lines for all threads.
std::optional<AcrossThreads> across_threads_of(const Chooser& chooser, StageId last);

void bind_across(const StageGraph& graph, StepWriter& steps, const AcrossThreads& lines,
                 int64_t threads);

}  // namespace kiln::autoschedule
