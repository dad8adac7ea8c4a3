#pragma once

#include <vector>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/templates/open_schedule.h"
#include "compiler/autoschedule/templates/sketch.h"

namespace kiln::autoschedule {

/// The given schedule with the steps that change which stages there are.
OpenSchedule start_for_cores(const language::Kernel& kernel, const language::Schedule& given,
                             const Target& target, const CompileOptions& options);

/// The sketches of each root stage that no step has touched, on a CPU.
std::vector<StageSketches> core_space(const Chooser& chooser, const std::vector<bool>& touched);

}  // namespace kiln::autoschedule
