#pragma once

#include <vector>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/templates/open_schedule.h"
#include "compiler/autoschedule/templates/sketch.h"

namespace kiln::autoschedule {

/// The given schedule with the steps that change which stages there are.
OpenSchedule start_for_threads(const language::Kernel& kernel, const language::Schedule& given,
                               const Target& target, const CompileOptions& options);

/// The sketches of each root stage on a GPU: of one that steps have touched, what they leave open.
/// The chooser's graph has all that is inline written out.
std::vector<StageSketches> thread_space(const Chooser& chooser, const std::vector<bool>& touched);

}  // namespace kiln::autoschedule
