#pragma once

#include <string_view>

#include "compiler/schedule/bounds/nest.h"
#include "compiler/target.h"

namespace kiln::schedule {

/// For each live stage its nest over the region that its consumers read, and its storage.
///
/// Consumers come first. A stage at the root computes whole tensors. One attached inside a loop
/// computes what the readers inside that loop need while it stands still: the union of all their
/// reads, with the loops further in run through. Where no better bounds are found, or an extent
/// would depend on a loop, it is the whole dimension.
///
/// Buffers inside the threads or blocks of a GPU are local or shared.
NestPlan infer_bounds(const StageGraph& graph, TargetKind target);

/// The loops that stand around a stage, outermost first. Nests of its consumers must exist.
std::vector<const Loop*> loops_around(const StageGraph& graph, const NestPlan& plan, StageId stage);

/// Whether a stage lies in the registers of a warp's threads, as a step says.
bool is_of_warp(const Stage& stage);

/// Refuses the scope that a step gave a stage, at the line of that step.
[[noreturn]] void refuse_scope(const Stage& stage, std::string_view why);

/// Whether the threads of a block fill a stage together: one in shared memory that stands inside
/// their loops, or those of a warp one in its memory. It holds what all of them read, and its own
/// loops over those threads are theirs.
bool is_filled_by_threads(const StageGraph& graph, const NestPlan& plan, StageId stage,
                          TargetKind target);

/// threadIdx.x, .y or .z
bool is_thread_index(ir::ThreadAxis axis);

/// Position of an axis among the loops of the nest of its stage.
size_t loop_of_axis(const Nest& nest, AxisId axis);

}  // namespace kiln::schedule
