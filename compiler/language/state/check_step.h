#pragma once

#include "compiler/language/state/state_tables.h"

// Why a step is refused. Not for other folders.
namespace kiln::language {

/// Throws InvalidArgument for a step without the fields of the step table, or with ids that there
/// are not.
void check_form(const Step& step, const StateTables& tables);

/// Throws InvalidArgument or Unsupported, in the user's names, for a step that may not come next.
/// It has passed check_form().
void check_step(const Step& step, const StateTables& tables);

/// The loop that the step names beside its stage is there; `what` is to be done at it.
void check_place(const Step& step, const StateTables& tables, const std::string& what);

/// The loops of a stage that a step rearranges must not be spoken for.
void refuse_settled(const Step& step, const StateTables& tables, const std::vector<AxisId>& axes);

/// compute_at, compute_inline: whether the stage may move there.
void check_compute_at(const Step& step, const StateTables& tables);
void check_inline(const Step& step, const StateTables& tables);

}  // namespace kiln::language
