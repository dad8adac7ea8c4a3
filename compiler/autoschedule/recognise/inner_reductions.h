#pragma once

#include <optional>

#include "compiler/autoschedule/recognise/structure.h"
#include "compiler/language/tables/step.h"

namespace kiln::autoschedule {

/// The step that makes a stage of a reduction inside an expression; nothing where no step names it.
std::optional<language::Step> reduction_stage_of(const StageGraph& graph, StageId part);

/// The schedule with a stage for each reduction inside an expression that has vectors along its own
/// data axes: a contraction, which can have a register tile, or one whose last axis is contiguous.
/// Inside the loops of its reader it would have vectors along the reduction at most.
///
/// Only of stages without steps, and without touching them: what they get is chosen afterwards, as
/// if the definition had the stage. Row reductions, as those of softmax, stay with their reader.
language::Schedule with_reduction_stages(const language::Kernel& kernel, language::Schedule given);

}  // namespace kiln::autoschedule
