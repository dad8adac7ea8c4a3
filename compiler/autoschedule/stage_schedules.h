#pragma once

#include "compiler/autoschedule/step_writer.h"
#include "compiler/autoschedule/structure.h"
#include "compiler/target.h"

namespace kiln::autoschedule {

/// What the schedules of stages need to know and where they write.
struct Chooser {
  const StageGraph& graph;
  const CompileOptions& options;
  StepWriter& steps;
};

// For the CPU.

/// Vectors along the last axis; the outer loops on several cores when there is enough to do.
void schedule_elementwise(const Chooser& chooser, StageId stage, bool may_be_parallel);

/// Vectors along a data axis that is contiguous in memory, else along a contiguous reduction axis
/// when the order of the reduction may change.
void schedule_reduction(const Chooser& chooser, StageId stage, bool may_be_parallel);

/// A tile of the output in registers: rows unrolled, columns in vectors, and the reduction around
/// it.
void schedule_contraction(const Chooser& chooser, StageId stage, const Contraction& contraction,
                          bool may_be_parallel);

/// Whichever of the above fits.
void schedule_compute(const Chooser& chooser, StageId stage, bool may_be_parallel);

/// Columns on several cores, each running through time, where they are independent; vectors of
/// columns where they are neighbours in memory.
void schedule_scan(const Chooser& chooser, StageId scan);

/// Axes that are an index by themselves run on several cores and in vectors; the others stay
/// serial.
void schedule_scatter(const Chooser& chooser, StageId stage);

// For CUDA.

/// One thread for each value of the axes that are an index by themselves.
void bind_scatter(const Chooser& chooser, StageId stage);

/// One thread an element: the data axes but time as one loop, in blocks of 256 threads.
void bind_elements(const Chooser& chooser, StageId stage);

}  // namespace kiln::autoschedule
