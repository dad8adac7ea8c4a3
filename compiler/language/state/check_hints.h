#pragma once

#include "compiler/language/state/state_tables.h"

namespace kiln::language {

/// What the steps say that change no loops, but how they run and where their values lie:
/// storage_align, storage_swizzle, double_buffer, tensorize, pragma, prefetch, env_threads,
/// software_pipeline. Others pass. Throws InvalidArgument.
void check_hint(const Step& step, const StateTables& tables);

/// A step about the memory of a stage needs one that is the stage's own: "align a cache_write of
/// it".
void refuse_foreign_memory(const Step& step, const StateTables& tables, std::string_view reason,
                           std::string_view verb);

/// The axis is a dimension of the step's stage.
void require_dimension(const Step& step, const StateTables& tables, std::string_view reason,
                       AxisId axis);

}  // namespace kiln::language
