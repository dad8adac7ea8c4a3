#pragma once

#include <string>
#include <string_view>

#include "compiler/codegen/cuda_names.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/launch.h"

namespace kiln::codegen {

/// What a launch is given: the tensors of the call, its sizes and strides, workspace, where checks
/// say what they found, and the step of a loop of the host.
std::string cuda_parameters(const ir::Kernel& kernel, const ir::Stmt& body,
                            const ir::HostLoops& around, CudaNames& names,
                            std::string_view size_type);

}  // namespace kiln::codegen
