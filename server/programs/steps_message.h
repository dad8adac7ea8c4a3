#pragma once

#include <functional>

#include "kiln/internal/worker.pb.h"
#include "server/programs/planner.h"
#include "server/tensors/arena_pool.h"

namespace kiln::server {

/// Memory that steps use: a value of this type, so many bytes into the slice.
void set_slot(const Slice& slice, int64_t offset, const program::ValueType& type,
              internal::ProgramSlot& slot);

/// Kernel k of a plan, on the slots that `slot_of` gives its values.
void set_kernel(const CompiledPlan& plan, size_t k,
                const std::function<uint32_t(program::ValueId)>& slot_of,
                internal::ProgramKernel& kernel);

}  // namespace kiln::server
