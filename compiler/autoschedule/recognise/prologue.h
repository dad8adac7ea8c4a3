#pragma once

#include <cstdint>

#include "compiler/autoschedule/recognise/structure.h"

namespace kiln::autoschedule {

/// Whether a stage computes each of its elements from single elements of others, and one other
/// stage alone reads it.
bool is_computed_for(const StageGraph& graph, StageId source, StageId reader);

/// Such a stage in front of a factor that a GPU's block fetches part by part: whether the block can
/// compute the part instead, since what lies side by side in it does so in all that it is made of.
bool is_prologue(const StageGraph& graph, StageId source, StageId reader);

/// Elements side by side of a prologue that are made of what begins at multiples of so many in each
/// tensor that moves along with them, too.
int64_t aligned_elements(const StageGraph& graph, StageId prologue);

}  // namespace kiln::autoschedule
