#pragma once

#include <optional>
#include <vector>

#include "compiler/autoschedule/recognise/sides.h"
#include "compiler/autoschedule/templates/step_writer.h"

namespace kiln::autoschedule {

/// The contraction that a stage is, where all it does is to sum products of elements of two tensors
/// that a GPU's block can fetch parts of; nothing else.
std::optional<Contraction> fetched_contraction(const StageGraph& graph, StageId stage,
                                               FactorForm form = FactorForm::Element);

/// Runs the innermost loop of what a tile stores, over so many neighbours of a thread: at once,
/// where rows are multiples of them.
void store_neighbours(const StageGraph& graph, StepWriter& steps, StageId stored, AxisId loop,
                      int64_t neighbours);

/// Whether the extent of each axis is a number or a size. Of a fused loop with other extents it is
/// not proved that a block has one value of each axis.
bool have_plain_extents(const StageGraph& graph, const std::vector<AxisId>& axes);

/// The stage that puts something around a factor, which can be computed where that is fetched.
std::optional<StageId> padding_of_factors(const StageGraph& graph, StageId stage,
                                          const Contraction& contraction);

/// The stages in front of its factors that can be computed where these are fetched, or stored: all
/// but what puts something around one.
std::vector<StageId> prologues_of_factors(const StageGraph& graph, StageId stage,
                                          const Contraction& contraction);

}  // namespace kiln::autoschedule
