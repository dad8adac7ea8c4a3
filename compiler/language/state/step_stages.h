#pragma once

#include "compiler/language/state/state_tables.h"

// What a step makes that defines a stage. Not for other folders.
namespace kiln::language {

/// Enters the stage that the step at `position` defines, with its axes, and what the step's own
/// stage becomes.
void define_stage(StateTables& tables, const Step& step, int position);

}  // namespace kiln::language
