#pragma once

#include "compiler/language/state/axis_table.h"

namespace kiln::language {

/// What the steps say that change no loops, but how they run and where their values lie:
/// storage_align, double_buffer, tensorize, pragma, prefetch, env_threads, software_pipeline.
/// Others pass. `text` is the step, as errors have it. Throws InvalidArgument.
void check_hint(const Step& step, const AxisTable& table, const Definition& definition,
                const std::string& text);

}  // namespace kiln::language
