#pragma once

#include <cstdint>
#include <span>

#include "compiler/ir/kernel.h"
#include "compiler/language/host_tensor.h"

namespace kiln::ir {

using language::HostTensor;

/// Runs the loops one iteration after the other on `arguments` (one a parameter; outputs are
/// written). Every index is checked against its buffer and every read of memory never written is
/// found: both are Internal errors, since lowering must not let them happen. A Check that fires is
/// InvalidArgument INDEX_OUT_OF_RANGE. Works on any stage of the pipeline up to split_host_device.
///
/// ThreadIndex loops run as loops, with all threads of a block in step between barriers.
void interpret(const Kernel& kernel, std::span<const int64_t> sizes,
               std::span<HostTensor> arguments);

}  // namespace kiln::ir
