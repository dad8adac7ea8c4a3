#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/templates/open_schedule.h"

namespace kiln::autoschedule {

/// A sum in equal parts of one of its axes: a stage has the sums of all parts, the other adds them
/// up.
struct SumSplit {
  AxisId axis = 0;
  int64_t parts = 1;
  size_t place = 0;  // of the parts among the dimensions of their stage
};

/// What a sum in so many parts takes, in cycles, but for adding them up; 1: as a whole.
using CyclesOfParts = std::function<double(int64_t parts)>;

/// The parts of at least so many elements in which the stage's sum along an axis takes the least
/// time, adding them up in a launch of its own included; nothing where that is as a whole. Parts
/// whose elements are no multiple of `lanes` are not tried where all of them are one. All sizes of
/// the stage are known.
std::optional<SumSplit> best_split(const Chooser& chooser, StageId stage, AxisId axis,
                                   int64_t least, int64_t lanes, const CyclesOfParts& cycles);

/// For CUDA: `given` with sums in two stages that would leave multiprocessors without work: long
/// rows that are few, products whose tiles are few, few columns. Parts of the sum, then their sum,
/// with which the epilogue is computed. Of sizes that a call brings nothing is split, since the
/// parts are the order of the sum; and nothing of floats where `options` are strict.
OpenSchedule with_split_sums(const language::Kernel& kernel, OpenSchedule given,
                             const Target& target, const CompileOptions& options);

}  // namespace kiln::autoschedule
