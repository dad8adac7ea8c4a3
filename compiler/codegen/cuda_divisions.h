#pragma once

#include <vector>

#include "compiler/codegen/cuda_expr.h"
#include "compiler/ir/launch.h"

namespace kiln::codegen {

/// The divisions that a thread of a launch needs several times with the same result: by sizes, of
/// its place and of sizes. Each has a variable of its own, declared where the thread begins; one
/// may stand in those that follow.
std::vector<KnownValue> repeated_divisions(const ir::LaunchNest& nest);

}  // namespace kiln::codegen
