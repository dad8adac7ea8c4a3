#pragma once

#include <optional>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/templates/sketch.h"

namespace kiln::autoschedule {

/// Elements of rows that are shorter than a vector, each of which some tensors have the same for,
/// as a scale for each of three colours: all rows are one line, and these tensors are copied as
/// often as fills vectors. Nothing for others.
std::optional<Sketch> repeated_rows_sketch(const Chooser& chooser, StageId stage,
                                           bool may_be_parallel);

}  // namespace kiln::autoschedule
