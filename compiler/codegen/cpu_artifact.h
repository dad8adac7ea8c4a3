#pragma once

#include "compiler/codegen/cpu_code.h"
#include "runtime/core/artifact.h"

namespace kiln::codegen {

/// The artifact of a kernel lowered for compact arguments and, where given, for strided ones: an
/// object with an entry each. The first variant is taken when all strides are compact. Requirements
/// and report are the caller's to add.
Artifact make_cpu_artifact(const ir::Kernel& compact, const ir::Kernel* strided,
                           const CpuOptions& options);

/// Loops, LLVM IR and assembly of a kernel line by line (aligned_json()).
std::string aligned_cpu(const ir::Kernel& kernel, const CpuOptions& options);

}  // namespace kiln::codegen
