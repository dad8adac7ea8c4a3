#pragma once

#include "compiler/language/tables/step.h"
#include "compiler/target.h"

namespace kiln {

/// The steps that will run: `schedule` with steps added for each root stage (and what is attached
/// to it) that has none, unless `options.automatic` is off. Stages with steps are left exactly as
/// they are. Axis ids of added steps follow those of `schedule`.
language::Schedule choose_schedule(const language::Kernel& kernel,
                                   const language::Schedule& schedule, const Target& target,
                                   const CompileOptions& options);

}  // namespace kiln
