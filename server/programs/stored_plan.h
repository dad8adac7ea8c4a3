#pragma once

#include <string>
#include <vector>

#include "compiler/program/plan.h"
#include "server/engine/compile_request.h"

namespace kiln::server {

/// A plan, and of each of its kernels the request that compiles it. What the plan was made from is
/// left out of it: definitions of the program, of its shapes and of the kernels.
struct CheckedPlan {
  program::Plan plan;
  std::vector<CheckedRequest> requests;  // by kernel
};

/// As caches keep it.
std::string pack_plan(const CheckedPlan& plan);

/// The plan of `program` that was packed. Throws Internal PLAN_ENTRY where the bytes are none.
CheckedPlan unpack_plan(const std::string& bytes, const program::Program& program,
                        const CompileSetting& setting);

}  // namespace kiln::server
