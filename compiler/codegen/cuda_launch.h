#pragma once

#include <cstdint>
#include <string>

#include "compiler/ir/kernel.h"
#include "compiler/ir/launch.h"
#include "runtime/core/artifact.h"

namespace kiln::codegen {

/// The extents of the launch as the runtime computes them; axes that no loop is bound to have one.
Launch launch_of(const ir::Kernel& kernel, const ir::LaunchNest& nest, std::string entry);

/// The most threads that a block of the launch has: as many as a device allows where its size is
/// not known.
int64_t most_threads(const ir::LaunchNest& nest);

}  // namespace kiln::codegen
