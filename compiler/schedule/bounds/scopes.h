#pragma once

#include <string_view>

#include "compiler/schedule/bounds/nest.h"
#include "compiler/target.h"

namespace kiln::schedule {

/// threadIdx.x, .y or .z
bool is_thread_index(ir::ThreadAxis axis);

/// Whether a stage lies in the registers of a warp's threads, as a step says.
bool is_of_warp(const Stage& stage);

/// Whether the threads of a block fill a stage together: one in shared memory that stands inside
/// their loops, or those of a warp one in its memory. It holds what all of them read, and its own
/// loops over those threads are theirs.
bool is_filled_by_threads(const StageGraph& graph, const NestPlan& plan, StageId stage,
                          TargetKind target);

/// What all threads around a buffer see of it: on a GPU, one inside a thread is that thread's own,
/// and one inside a block is shared by its threads. On a CPU a scope that is named says nothing.
/// Refuses scopes that steps have named where there are none.
ir::Scope scope_of(const StageGraph& graph, const NestPlan& plan, StageId stage, TargetKind target);

/// Refuses the scope that a step gave a stage, at the line of that step.
[[noreturn]] void refuse_scope(const Stage& stage, std::string_view why);

}  // namespace kiln::schedule
