#pragma once

#include <functional>
#include <optional>

#include "compiler/autoschedule/recognise/structure.h"
#include "compiler/language/tables/step.h"

namespace kiln::autoschedule {

/// The step that makes a stage of a reduction inside an expression; nothing where no step names it.
std::optional<language::Step> reduction_stage_of(const StageGraph& graph, StageId part);

/// Whether a reduction has vectors along its own data axes: a contraction, which can have a
/// register tile, or one whose last axis is contiguous. Inside the loops of its reader it would
/// have vectors along the reduction at most. Row reductions, as those of softmax, have none.
bool gains_vectors(const StageGraph& graph, StageId id);

/// The schedule with a stage for each reduction inside an expression that gains by it.
///
/// Only of stages without steps, and without touching them: what they get is chosen afterwards, as
/// if the definition had the stage.
language::Schedule with_reduction_stages(
    const language::Kernel& kernel, language::Schedule given,
    const std::function<bool(const StageGraph&, StageId)>& gains);

}  // namespace kiln::autoschedule
