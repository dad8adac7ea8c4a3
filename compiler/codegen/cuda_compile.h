#pragma once

#include <string>

#include "compiler/codegen/nvrtc.h"
#include "compiler/ir/kernel.h"
#include "runtime/core/artifact.h"

namespace kiln::codegen {

/// The artifact of a kernel lowered for cuda with compact arguments and, where given, with strided
/// ones: a cubin for the arch of the options (empty: sm_90) made by NVRTC, its PTX, launches,
/// workspace, and in the report what each kernel uses. Needs no GPU. Requirements, and what else
/// the report says, are the caller's.
Artifact make_cuda_artifact(const ir::Kernel& compact, const ir::Kernel* strided,
                            const CudaOptions& options);

/// Loops, CUDA C and PTX of a kernel line by line (aligned_json()), and the cubin for who has a
/// disassembler.
std::string aligned_cuda(const ir::Kernel& kernel, const CudaOptions& options);

/// The CUDA C of the same.
std::string cuda_text(const ir::Kernel& compact, const ir::Kernel* strided,
                      const CudaOptions& options = {});

}  // namespace kiln::codegen
