#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/templates/open_schedule.h"

namespace kiln::autoschedule {

/// A sum in parts of one of its axes, equal ones but for the last: a stage has the sums of all
/// parts, the other adds them up.
struct SumSplit {
  AxisId axis = 0;
  int64_t length = 1;  // of a part
  size_t place = 0;    // of the parts among the dimensions of their stage
};

/// The largest number of equal parts that is no more than `most`.
int64_t equal_parts(int64_t extent, int64_t most);

/// What a sum in so many parts takes, in cycles, but for adding them up; 1: as a whole.
using CyclesOfParts = std::function<double(int64_t parts)>;

/// How long the parts are that a sum of so many elements is tried in, no more than so many;
/// nothing where it is not.
using LengthOfParts = std::function<std::optional<int64_t>(int64_t extent, int64_t parts)>;

/// Parts of one length, of at least so many elements; of a multiple of `lanes` where the whole sum
/// is one.
LengthOfParts equal_lengths(int64_t least, int64_t lanes);

/// Parts of a multiple of so many steps, and of at least so many elements; the last one has the
/// rest.
LengthOfParts lengths_in_steps(int64_t least, int64_t steps);

/// The parts in which the stage's sum along an axis takes the least time, adding them up in a
/// launch of its own included; nothing where that is as a whole. All sizes of the stage are known.
std::optional<SumSplit> best_split(const Chooser& chooser, StageId stage, AxisId axis,
                                   const LengthOfParts& length_of, const CyclesOfParts& cycles);

/// The parts of an open stage's reduction; nothing where it is better as a whole.
using ChooseSplit = std::function<std::optional<SumSplit>(const Chooser&, StageId)>;

/// `given` with the reductions in two stages that are chosen: parts, then what these make, with
/// which an epilogue is computed. The parts are the order of the sum, so they depend on the
/// definition alone; and nothing of floats is split where `options` are strict.
OpenSchedule with_split_sums(const language::Kernel& kernel, OpenSchedule given,
                             const Target& target, const CompileOptions& options,
                             const ChooseSplit& choose);

/// For CUDA: of sums that would leave multiprocessors without work, long rows that are few,
/// products whose tiles are few, few columns; of known sizes.
std::optional<SumSplit> split_for_threads(const Chooser& chooser, StageId stage);

/// For CPUs: of reductions that have so few results that one core would have them all. Of sizes
/// that a call brings, parts of one length.
std::optional<SumSplit> split_for_cores(const Chooser& chooser, StageId stage);

}  // namespace kiln::autoschedule
