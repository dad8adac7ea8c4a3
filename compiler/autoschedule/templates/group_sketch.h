#pragma once

#include <optional>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/templates/sketch.h"

namespace kiln::autoschedule {

/// Elements whose last axis is a group of two or four, as the parts of a complex number: vectors
/// along the axis before, one for each member of the group. Nothing for others, where what is read
/// along that axis lies far apart, or where the loop over it is one of the first `dimensions`, in
/// which others stand.
std::optional<Sketch> group_sketch(const Chooser& chooser, StageId stage, bool may_be_parallel,
                                   size_t dimensions);

}  // namespace kiln::autoschedule
