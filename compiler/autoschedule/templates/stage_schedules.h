#pragma once

#include <optional>

#include "compiler/autoschedule/recognise/epilogue.h"
#include "compiler/autoschedule/templates/gpu_machine.h"
#include "compiler/autoschedule/templates/parameters.h"

namespace kiln::autoschedule {

// For the CPU: each gives at least one sketch, the one to take unmeasured first.

/// A tile of the output in registers: rows unrolled, columns in vectors, and the reduction around
/// it. Nothing when there are too few columns for a vector.
std::vector<Sketch> contraction_sketches(const Chooser& chooser, StageId stage,
                                         const Contraction& contraction, bool may_be_parallel);

/// Elements: vectors along the last axis that can have them, tiles where lines lie across. The
/// loops over the first `dimensions` axes stay, for others that stand in them.
std::vector<Sketch> element_sketches(const Chooser& chooser, StageId stage, bool may_be_parallel,
                                     size_t dimensions = 0);

/// A reduction that is no contraction: vectors along data axes, or along the reduction. Loops over
/// the first `dimensions` axes stay.
std::vector<Sketch> reduction_sketches(const Chooser& chooser, StageId stage, bool may_be_parallel,
                                       size_t dimensions = 0);

/// Elements, a reduction or a contraction: vectors along data axes, or along a contiguous reduction
/// axis where the order of the reduction may change; outer loops on several cores. Loops over the
/// first `dimensions` axes stay.
std::vector<Sketch> compute_sketches(const Chooser& chooser, StageId stage, bool may_be_parallel,
                                     size_t dimensions = 0);

/// Vectors along rows of so many dimensions, for a stage that stands in a loop over rows. One with
/// an element a row has none, but its reductions may.
void schedule_row(const Chooser& chooser, StepWriter& steps, StageId stage, size_t dimensions);

/// Columns on several cores, each running through time, where they are independent; vectors of
/// columns where they are neighbours in memory.
std::vector<Sketch> scan_sketches(const Chooser& chooser, StageId scan);

/// Axes that are an index by themselves run on several cores and in vectors; the others stay
/// serial.
std::vector<Sketch> scatter_sketches(const Chooser& chooser, StageId stage);

// For CUDA, with so many threads a block.

/// One thread for each value of the axes that are an index by themselves.
void bind_scatter(const StageGraph& graph, StepWriter& steps, StageId stage, int64_t block);

/// How many neighbours a thread computes, so that they move at once; 1 where they are not known to
/// be aligned, or the machine has more threads than that.
int64_t lanes_of_thread(const StageGraph& graph, StageId stage, const GpuMachine& machine);

/// What a thread computes of a stage: elements side by side, several times.
struct ThreadElements {
  int64_t lanes = 1;
  int64_t vectors = 1;
};
/// Such as lanes_of_thread(), of functions several times where there are enough for all threads.
ThreadElements elements_of_thread(const StageGraph& graph, StageId stage,
                                  const GpuMachine& machine);
/// One thread for so many elements: the data axes but time as one loop.
void bind_elements(const StageGraph& graph, StepWriter& steps, StageId stage, int64_t block,
                   const ThreadElements& elements = {});

/// Neighbours of a thread along a dimension in which a window slides: they read the same places.
struct WindowLines {
  size_t dimension = 0;
  int64_t count = 1;
};
/// Nothing where no dimension but the last slides, or where threads would have too little to do.
std::optional<WindowLines> lines_of_thread(const StageGraph& graph, StageId stage,
                                           const GpuMachine& machine);
/// One thread for an element of a stage, or for such neighbours, and for what is made of them.
void bind_results(const StageGraph& graph, StepWriter& steps, StageId stage,
                  const std::optional<Epilogue>& epilogue, const std::optional<WindowLines>& lines,
                  int64_t block);

/// Of a sum whose parts the threads of a block have: a thread for each of the block's results,
/// which adds the parts up and does what the epilogue says. The loops `blocks` and `results` are
/// all of the epilogue, or else of the stage. Returns the loop over blocks.
AxisId bind_results_of_block(StepWriter& steps, StageId stage,
                             const std::optional<Epilogue>& epilogue,
                             const std::vector<AxisId>& blocks, const std::vector<AxisId>& results);

/// How many columns are a block that runs through all rows: kRunBytes, but blocks enough for some
/// cores. Nothing when there are too few columns for vectors.
std::optional<int64_t> columns_of_block(const Chooser& chooser, StageId stage, AxisId axis);

}  // namespace kiln::autoschedule
