#pragma once

#include "kiln/v1/program.pb.h"
#include "server/programs/planner.h"

namespace kiln::server {

/// What a plan is, for who looks at it.
void write_plan(const CompiledPlan& plan, v1::PlanProgramResponse& response);

}  // namespace kiln::server
