#pragma once

#include <string>

#include "compiler/language/state/state_tables.h"

namespace kiln::language {

/// "split(k, factor=32)", "compute_at(B, C.i)": for messages. The step's ids are in range.
std::string text_of(const Step& step, const StateTables& tables);

/// The same with each axis after its stage, "split(C.k, factor=32)": as a kernel file has it.
std::string kernel_file_text(const Step& step, const StateTables& tables);

}  // namespace kiln::language
